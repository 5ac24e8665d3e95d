"""Who watches which job, and what each has not been told yet."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from neorion.iris.controllers.pending_reasons import PendingReasons
from neorion.iris.model import JobId, PendingReason


class JobWatch:
    """One reader of one job. What changed is a set: who reads slowly is told later and less often, never something old."""

    def __init__(self) -> None:
        self._stirred = asyncio.Event()
        self._tasks: dict[int, None] = {}

    def notify(self, index: int | None = None) -> None:
        """The job changed, or one of its tasks did."""
        if index is not None:
            self._tasks[index] = None
        self._stirred.set()

    async def changed(self) -> None:
        await self._stirred.wait()

    def take(self) -> list[int]:
        """The tasks that changed since the last time."""
        tasks, self._tasks = self._tasks, {}
        self._stirred.clear()
        return list(tasks)


class JobWatchHub:
    """The open watches, by job. A reader waits for the journal before it sends what changed."""

    def __init__(self, reasons: PendingReasons) -> None:
        self._reasons = reasons
        self._of: dict[JobId, dict[JobWatch, None]] = {}
        self._sent: dict[JobId, PendingReason | None] = {}

    @contextmanager
    def watch(self, job: JobId) -> Generator[JobWatch]:
        watcher = JobWatch()
        self._of.setdefault(job, {})[watcher] = None
        try:
            yield watcher
        finally:
            del self._of[job][watcher]
            if not self._of[job]:
                del self._of[job]
                self._sent.pop(job, None)

    def notify(self, job: JobId, index: int | None = None) -> None:
        for watcher in self._of.get(job, ()):
            watcher.notify(index)

    def refresh_reasons(self) -> None:
        """Notifies the readers of jobs that wait for another reason than before."""
        for job in self._of:
            now = self._reasons.of(job)
            if self._sent.get(job) != now:
                self._sent[job] = now
                self.notify(job)
