"""Tasks that waited longer than they may are given up, at the very moment."""

from collections.abc import Callable

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.decide import PendingDeadline, deadlines
from neorion.iris.model import JobId, TaskState
from neorion.keel.base import Duration


class DeadlineController:
    """Knows when the next wait is over. `wake` turns its loop; it is set when the loop is made."""

    def __init__(self, deck: ControllerContext, lives: LifecycleManager) -> None:
        self._deck = deck
        self._lives = lives
        self.wake: Callable[[], None] = lambda: None

    def stirred(self, job: JobId, index: int | None) -> None:
        """A task that begins to wait may be the next whose time is over."""
        book = self._deck.book
        if (
            index is not None
            and job in book.jobs_with_wait_limit
            and book.tasks[job][index].state is TaskState.PENDING
        ):
            self.wake()

    async def tick(self) -> Duration | None:
        """Gives up who is late; returns how long it is until the next one will be."""
        book, now = self._deck.book, self._deck.clock.now()
        waiting = [
            PendingDeadline(job, task.index, book.jobs[job].spec.limits, task.since)
            for job in book.jobs_with_wait_limit
            for task in book.tasks[job]
            if task.state is TaskState.PENDING
        ]
        found = deadlines(waiting, now)
        for late in found.over:
            task = book.tasks[late.job][late.task]
            # The first one given up ends its whole job.
            if task.state is TaskState.PENDING:
                self._lives.expire_task(task)
        return None if found.wake_at is None else found.wake_at.since(now)
