"""Watches of jobs, with the changes that were not sent yet."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from neorion.iris.controllers.pending_reasons import PendingReasons
from neorion.iris.model import JobId, PendingReason


class JobWatch:
    """Watch of one job. Changes are a set, so a slow reader gets fewer updates, but always the current state."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._tasks: dict[int, None] = {}

    def notify(self, index: int | None = None) -> None:
        """Records a change of the job, or of one of its tasks."""
        if index is not None:
            self._tasks[index] = None
        self._changed.set()

    async def changed(self) -> None:
        await self._changed.wait()

    def take(self) -> list[int]:
        """Returns the tasks that changed since the last call."""
        tasks, self._tasks = self._tasks, {}
        self._changed.clear()
        return list(tasks)


class JobWatchHub:
    """Open watches by job. A reader waits for the journal before it sends changes."""

    def __init__(self, reasons: PendingReasons) -> None:
        self._reasons = reasons
        self._watches: dict[JobId, dict[JobWatch, None]] = {}
        self._sent: dict[JobId, PendingReason | None] = {}

    @contextmanager
    def watch(self, job: JobId) -> Generator[JobWatch]:
        watcher = JobWatch()
        self._watches.setdefault(job, {})[watcher] = None
        try:
            yield watcher
        finally:
            del self._watches[job][watcher]
            if not self._watches[job]:
                del self._watches[job]
                self._sent.pop(job, None)

    def notify(self, job: JobId, index: int | None = None) -> None:
        for watcher in self._watches.get(job, ()):
            watcher.notify(index)

    def refresh_reasons(self) -> None:
        """Notifies the watches of jobs whose pending reason has changed."""
        for job in self._watches:
            now = self._reasons.of(job)
            if self._sent.get(job) != now:
                self._sent[job] = now
                self.notify(job)
