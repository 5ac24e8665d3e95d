"""What happened to the objects of the memory cluster, in order, for as long as it is remembered."""

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from neorion.keel.kube.errors import ResourceExpired
from neorion.keel.kube.testing.field_ownership import Json

# What a watcher may be behind before it has to list again; tests compact sooner on purpose.
CHANGES_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Change:
    """One write: the object before and after it, and the version it made. Never changed afterwards."""

    version: int
    resource: str
    before: Json | None
    after: Json | None


class WatchHistory:
    """A bounded log with one counter of versions for all kinds, as etcd has."""

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
        """Forgets everything until now: whoever resumes from an older version has to list again."""
        self._changes.clear()
        self._compacted = self.version

    def since(self, version: int) -> list[Change]:
        """Later changes, oldest first; found from the end, because most watchers are close behind."""
        if version < self._compacted:
            raise ResourceExpired(f"The version {version} is too old.")
        tail = list(takewhile(lambda change: change.version > version, reversed(self._changes)))
        tail.reverse()
        return tail

    async def news(self) -> None:
        """Returns when something has happened."""
        await self._news.wait()
