"""What a job writes, through all attempts of its tasks, and what becomes of it, until it has ended."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from neorion.iris.client import AsyncIrisClient
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration, NotFound, Retry
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.run import Backoff

T = TypeVar("T")

# More at once is a stream that nobody reads; `--task` chooses another.
TASKS_MAX: Final = 32
# A stream that ended too soon is opened again after this.
_AGAIN: Final = Duration.of(ms=100)
# What is longer is no line that somebody reads, and is cut into several.
_LINE_BYTES_MAX: Final = 1 << 20
# A controller that restarts is back long before that.
_PATIENCE: Final = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=5), attempts=100)


class _LogPosition:
    """How far one task's output has been shown: in which attempt, up to which byte."""

    def __init__(self, number: int = 1, offset: int = 0) -> None:
        self.number = number
        self.offset = offset
        # The newest attempt somebody streams now; 0 if nobody does.
        self.streamed = 0
        self.stream = anyio.CancelScope()


class JobFollower:
    """Follows one job. `show` gets what its tasks write, `tell` the sentences about it."""

    def __init__(
        self,
        client: AsyncIrisClient,
        job: str,
        show: Callable[[int, bytes], None],
        tell: Callable[[str], None],
        only: int | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        self._client = client
        self._job = job
        self._show = show
        self._tell = tell
        self._only = only
        self._places: dict[int, _LogPosition] = {}
        self._reason = ""
        self._clock = SystemClock()
        self._rng = system_rng()

    def begin(self, index: int, number: int, offset: int) -> None:
        """So much of a task has been shown already."""
        self._places[index] = _LogPosition(number, offset)

    async def run(self) -> pb.Job:
        """The job as it ended, once all that it wrote has been shown."""
        answer = pb.WaitResponse()
        async with anyio.create_task_group() as group:
            answer = await self._watch(group)
            group.cancel_scope.cancel()
        for task in answer.tasks:
            if self._wanted(task) and task.tries:
                await self._steady(lambda task=task: self._write(task.index, task.tries, follow=False))
        return answer.job or pb.Job()

    async def cancel(self) -> None:
        await self._steady(lambda: self._client.cancel(self._job))

    async def _watch(self, group: TaskGroup) -> pb.WaitResponse:
        while not await self._steady(lambda: self._attend(group)):
            await self._clock.sleep(_AGAIN)
        request = pb.WaitRequest(job=self._job)
        return await self._steady(lambda: self._client.calls.wait(request))

    async def _attend(self, group: TaskGroup) -> bool:
        """Follows the job's changes as they come; says whether they came to the job's end."""
        heard = False
        try:
            async for change in self._client.watch(self._job):
                heard = True
                job = change.job or pb.Job()
                if job.ended_ms:
                    return True
                self._told(job)
                for task in change.tasks:
                    if self._wanted(task):
                        self._stream(task, group)
        except Retry:
            # One that was heard from is asked again with new patience.
            if not heard:
                raise
        return False

    def _told(self, job: pb.Job) -> None:
        sentence = job.reason.sentence if job.reason else ""
        if sentence and sentence != self._reason:
            self._tell(f"waiting: {sentence}")
        self._reason = sentence

    def _wanted(self, task: pb.Task) -> bool:
        return task.index < TASKS_MAX if self._only is None else task.index == self._only

    def _stream(self, task: pb.Task, group: TaskGroup) -> None:
        """Streams the task's attempt if that is a new one."""
        place = self._places.setdefault(task.index, _LogPosition())
        if task.state != "running" or place.streamed >= task.tries:
            return
        again = f", try {task.tries}" if task.tries > 1 else ""
        self._tell(f"task {task.index} runs on {task.worker}{again}")
        place.stream.cancel()
        place.stream, place.streamed = anyio.CancelScope(), task.tries
        group.start_soon(self._live, task.index, task.tries, place.stream)

    async def _live(self, index: int, number: int, stream: anyio.CancelScope) -> None:
        # Its own scope: several attempts may come to an end before the first of these tasks runs.
        with stream:
            await self._steady(lambda: self._write(index, number, follow=True))

    async def _write(self, index: int, last: int, *, follow: bool) -> None:
        """Shows what has not been shown of the task's attempts up to `last`."""
        place = self._places.setdefault(index, _LogPosition())
        while True:
            request = pb.LogsRequest(
                job=self._job,
                task=index,
                attempt=place.number,
                offset=place.offset,
                follow=follow and place.number == last,
            )
            try:
                async for chunk in self._client.calls.logs(request):
                    place.offset = chunk.offset + len(chunk.text)
                    self._show(index, chunk.text)
            except NotFound:
                # An attempt that nobody remembers has left nothing to read.
                pass
            if place.number >= last:
                return
            place.number, place.offset = place.number + 1, 0

    async def _steady(self, call: Callable[[], Awaitable[T]]) -> T:
        """A controller that restarts takes nothing with it: the job goes on, and so do we."""
        for failures, wait in enumerate(_PATIENCE.waits(self._rng)):
            try:
                return await call()
            except Retry:
                if not failures:
                    self._tell("lost touch with the controller; trying again")
                await self._clock.sleep(wait)
        return await call()


class LineMultiplexer:
    """Output of several tasks at once: whole lines, each after the number of its task.

    A line that was written over, as progress bars do, is shown as a terminal would show it last.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._open: dict[int, bytes] = {}

    def show(self, index: int, text: bytes) -> None:
        whole, newline, rest = text.rpartition(b"\n")
        if newline:
            mark, whole = b"[%d] " % index, self._open.pop(index, b"") + whole
            self._write(b"".join(mark + _last(line.rstrip(b"\r")) + b"\n" for line in whole.split(b"\n")))
        # Bars go on for days: what is written over is not kept.
        self._open[index] = _last(self._open.get(index, b"") + rest)
        if len(self._open[index]) > _LINE_BYTES_MAX:
            self.show(index, b"\n")

    def close(self) -> None:
        """What the tasks left without an end of line."""
        for index in sorted(self._open):
            if self._open[index]:
                self.show(index, b"\n")


def _last(line: bytes) -> bytes:
    """What is left of a line once all of it is written; what ends it may still be followed by a newline."""
    return line[line.rfind(b"\r", 0, len(line.rstrip(b"\r"))) + 1 :]
