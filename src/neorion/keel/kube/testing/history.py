"""The writes to the memory cluster in order, up to a limit."""

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from neorion.keel.kube.errors import ResourceExpired
from neorion.keel.kube.testing.field_ownership import Json

# The writes that a watcher may be behind before it has to list again; tests compact sooner on purpose.
CHANGES_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Change:
    """One write: the object before and after it, and its version. Immutable."""

    version: int
    resource: str
    before: Json | None
    after: Json | None


class WatchHistory:
    """A bounded log with one version counter for all kinds, as in etcd."""

    def __init__(self) -> None:
        self.version = 1
        self._changes: deque[Change] = deque()
        self._compacted = 0
        self._news = asyncio.Event()

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def add(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > CHANGES_MAX:
            self._compacted = self._changes.popleft().version
        self._news.set()
        self._news = asyncio.Event()

    def compact(self) -> None:
        """Drops all writes until now: a watcher that resumes from an older version has to list again."""
        self._changes.clear()
        self._compacted = self.version

    def since(self, version: int) -> list[Change]:
        """Later changes, oldest first. Searched from the end, because most watchers are close behind."""
        if version < self._compacted:
            raise ResourceExpired(f"The version {version} is too old.")
        tail = list(takewhile(lambda change: change.version > version, reversed(self._changes)))
        tail.reverse()
        return tail

    async def news(self) -> None:
        """Waits for the next write."""
        await self._news.wait()
