"""Who watches which job, and what each has not been told yet."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

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
    """Everybody who watches. The book tells it what changed; nobody is told anything before it is durable."""

    def __init__(self) -> None:
        self._of: dict[JobId, dict[JobWatch, None]] = {}
        self._reasons: dict[JobId, PendingReason | None] = {}

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
                self._reasons.pop(job, None)

    def notify(self, job: JobId, index: int | None = None) -> None:
        for watcher in self._of.get(job, ()):
            watcher.notify(index)

    def look(self, reason: Callable[[JobId], PendingReason | None]) -> None:
        """After each pass: jobs that wait for another reason than before have changed too."""
        for job in self._of:
            now = reason(job)
            if self._reasons.get(job) != now:
                self._reasons[job] = now
                self.notify(job)
