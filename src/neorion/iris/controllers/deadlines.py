"""Scheduling timeouts: tasks that have waited too long fail at their deadline."""

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.decide import PendingDeadline, deadlines
from neorion.iris.model import JobId, TaskState
from neorion.keel.base import Callbacks, Duration


class DeadlineController:
    """Controller that fails tasks at their wait limit. `wake` requests a tick."""

    def __init__(self, context: ControllerContext, lifecycle: LifecycleManager) -> None:
        self._context = context
        self._lifecycle = lifecycle
        self.wake: Callbacks[[]] = Callbacks()

    def on_change(self, job: JobId, index: int | None) -> None:
        """Wakes the loop, because a task that begins to wait may have the next deadline."""
        cluster = self._context.cluster
        if (
            index is not None
            and job in cluster.jobs_with_wait_limit
            and cluster.tasks[job][index].state is TaskState.PENDING
        ):
            self.wake()

    async def tick(self) -> Duration | None:
        """Fails overdue tasks. Returns the time until the next deadline, or None."""
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
            # The first overdue task ends its whole job.
            if task.state is TaskState.PENDING:
                self._lifecycle.expire_task(task)
        return None if found.wake_at is None else found.wake_at.since(now)
