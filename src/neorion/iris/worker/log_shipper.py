"""Log shipper: sends the output of attempts to the controller while they run, and the rest after their end."""

import os
from collections.abc import Callable
from pathlib import PurePath

from neorion.iris.model import AttemptId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import WorkerServiceClient
from neorion.iris.ports import AttemptStatus, Phase, Runtime
from neorion.keel.base import Duration, NoCapacity
from neorion.keel.clock import Clock

CHUNK_BYTES_MAX = 256 * 1024
# Delay of the output for a follower.
SHIP_EVERY = Duration.of(ms=200)
_FULL_PAUSE = Duration.of(seconds=5)


class LogShipper:
    """Sender of the new part of every log that grew. The controller returns how much of each it has stored."""

    def __init__(
        self, runtime: Runtime, calls: WorkerServiceClient, clock: Clock, key: Callable[[AttemptId], str]
    ) -> None:
        """`key` returns the key that authenticates reports about an attempt."""
        self._runtime = runtime
        self._calls = calls
        self._clock = clock
        self._key = key
        self._kept: dict[AttemptId, int] = {}
        self._live: dict[AttemptId, None] = {}

    def update(self, seen: AttemptStatus) -> None:
        """Updates the set of running attempts. The logs of short ones are sent only with their end."""
        if seen.phase is Phase.ENDED:
            self._live.pop(seen.attempt, None)
        elif seen.phase is not Phase.WAITING:
            self._live[seen.attempt] = None

    async def run(self, worker: str) -> None:
        while True:
            pause = SHIP_EVERY
            try:
                for attempt in list(self._live):
                    await self._ship(worker, attempt, leave=0)
            except NoCapacity:
                # The text stays here until the controller has room for it.
                pause = _FULL_PAUSE
            await self._clock.sleep(pause)

    async def rest(self, worker: str, attempt: AttemptId) -> pb.LogChunk | None:
        """Rest of an ended attempt's log, short enough for the report of its end."""
        chunk = self._next(attempt)
        if chunk is not None and len(chunk.text) == CHUNK_BYTES_MAX:
            await self._ship(worker, attempt, leave=CHUNK_BYTES_MAX)
            chunk = self._next(attempt)
        return chunk

    def forget(self, attempt: AttemptId) -> None:
        """Forgets a log that the controller has stored completely."""
        self._kept.pop(attempt, None)

    async def _ship(self, worker: str, attempt: AttemptId, leave: int) -> None:
        while _size(self._runtime.log(attempt)) - self._kept.get(attempt, 0) > leave:
            chunk = self._next(attempt)
            if chunk is None:
                return
            answer = await self._calls.push_logs(pb.PushLogsRequest(worker=worker, chunks=[chunk]))
            self._kept[attempt] = answer.kept[attempt]

    def _next(self, attempt: AttemptId) -> pb.LogChunk | None:
        kept = offset = self._kept.get(attempt, 0)
        text = _read(self._runtime.log(attempt), offset)
        # Checked after reading, because text that is dropped in between may have been read as zeros.
        while text and (start := self._runtime.kept_from(attempt)) > offset:
            offset, text = start, _read(self._runtime.log(attempt), start)
        if not text:
            return None
        key = self._key(attempt)
        return pb.LogChunk(attempt=attempt, offset=offset, text=text, gap=offset > kept, report_key=key)


def _read(path: PurePath, offset: int) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(file, CHUNK_BYTES_MAX, offset)
    finally:
        os.close(file)


def _size(path: PurePath) -> int:
    try:
        # Called for every log in every turn, so a `Path` would be too slow.
        return os.stat(path).st_size  # noqa: PTH116 -- faster
    except FileNotFoundError:
        return 0
