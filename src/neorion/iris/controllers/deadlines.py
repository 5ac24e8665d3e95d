"""Tasks that waited longer than they may are given up, at the very moment."""

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.decide import PendingDeadline, deadlines
from neorion.iris.model import JobId, TaskState
from neorion.keel.base import Callbacks, Duration


class DeadlineController:
    """Ends tasks whose wait limit is over. `wake` asks for a tick."""

    def __init__(self, context: ControllerContext, lifecycle: LifecycleManager) -> None:
        self._context = context
        self._lifecycle = lifecycle
        self.wake: Callbacks[[]] = Callbacks()

    def on_change(self, job: JobId, index: int | None) -> None:
        """A task that begins to wait may be the next whose time is over."""
        cluster = self._context.cluster
        if (
            index is not None
            and job in cluster.jobs_with_wait_limit
            and cluster.tasks[job][index].state is TaskState.PENDING
        ):
            self.wake()

    async def tick(self) -> Duration | None:
        """Gives up who is late; returns how long it is until the next one will be."""
        cluster, now = self._context.cluster, self._context.clock.now()
        waiting = [
            PendingDeadline(job, task.index, cluster.jobs[job].spec.limits, task.since)
            for job in cluster.jobs_with_wait_limit
            for task in cluster.tasks[job]
            if task.state is TaskState.PENDING
        ]
        found = deadlines(waiting, now)
        for late in found.over:
            task = cluster.tasks[late.job][late.task]
            # The first one given up ends its whole job.
            if task.state is TaskState.PENDING:
                self._lifecycle.expire_task(task)
        return None if found.wake_at is None else found.wake_at.since(now)
