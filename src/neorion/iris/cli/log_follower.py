"""Follows the output and the state of a job, over all attempts of its tasks, until the job has ended."""

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

# Output of more tasks at once is unreadable; `--task` selects one.
TASKS_MAX: Final = 32
# Pause before a stream that ended too early is opened again.
_REOPEN_AFTER: Final = Duration.of(ms=100)
# Longer lines are split.
_LINE_BYTES_MAX: Final = 1 << 20
# Longer than a restart of the controller.
_RETRIES: Final = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=5), attempts=100)


class _LogPosition:
    """Position in one task's output up to which it was shown: attempt and byte offset."""

    def __init__(self, number: int = 1, offset: int = 0) -> None:
        self.number = number
        self.offset = offset
        # Attempt that is streamed now; 0 if none is.
        self.streamed = 0
        self.stream = anyio.CancelScope()


class JobFollower:
    """Follower of one job. `show` gets the output of its tasks, `report` sentences about their state."""

    def __init__(
        self,
        client: AsyncIrisClient,
        job: str,
        show: Callable[[int, bytes], None],
        report: Callable[[str], None],
        only: int | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        self._client = client
        self._job = job
        self._show = show
        self._report = report
        self._only = only
        self._positions: dict[int, _LogPosition] = {}
        self._reason = ""
        self._clock = SystemClock()
        self._rng = system_rng()

    def begin(self, index: int, number: int, offset: int) -> None:
        """Sets how much of a task was shown already."""
        self._positions[index] = _LogPosition(number, offset)

    async def run(self) -> pb.Job:
        """Returns the ended job after all of its output was shown."""
        answer = pb.WaitResponse()
        async with anyio.create_task_group() as group:
            answer = await self._watch(group)
            group.cancel_scope.cancel()
        for task in answer.tasks:
            if self._is_selected(task) and task.tries:
                await self._retrying(lambda task=task: self._write(task.index, task.tries, follow=False))
        return answer.job or pb.Job()

    async def cancel(self) -> None:
        await self._retrying(lambda: self._client.cancel(self._job))

    async def _watch(self, group: TaskGroup) -> pb.WaitResponse:
        while not await self._retrying(lambda: self._follow_changes(group)):
            await self._clock.sleep(_REOPEN_AFTER)
        request = pb.WaitRequest(job=self._job)
        return await self._retrying(lambda: self._client.calls.wait(request))

    async def _follow_changes(self, group: TaskGroup) -> bool:
        """Follows the job's changes. True if they reached the job's end."""
        received = False
        try:
            async for change in self._client.watch(self._job):
                received = True
                job = change.job or pb.Job()
                if job.ended_ms:
                    return True
                self._report_reason(job)
                for task in change.tasks:
                    if self._is_selected(task):
                        self._stream(task, group)
        except Retry:
            # After a received change, the number of retries starts again.
            if not received:
                raise
        return False

    def _report_reason(self, job: pb.Job) -> None:
        sentence = job.reason.sentence if job.reason else ""
        if sentence and sentence != self._reason:
            self._report(f"waiting: {sentence}")
        self._reason = sentence

    def _is_selected(self, task: pb.Task) -> bool:
        return task.index < TASKS_MAX if self._only is None else task.index == self._only

    def _stream(self, task: pb.Task, group: TaskGroup) -> None:
        """Streams the task's attempt if it is new."""
        position = self._positions.setdefault(task.index, _LogPosition())
        if task.state != "running" or position.streamed >= task.tries:
            return
        again = f", try {task.tries}" if task.tries > 1 else ""
        self._report(f"task {task.index} runs on {task.worker}{again}")
        position.stream.cancel()
        position.stream, position.streamed = anyio.CancelScope(), task.tries
        group.start_soon(self._live, task.index, task.tries, position.stream)

    async def _live(self, index: int, number: int, stream: anyio.CancelScope) -> None:
        # A separate scope, because several attempts may end before the first of these tasks runs.
        with stream:
            await self._retrying(lambda: self._write(index, number, follow=True))

    async def _write(self, index: int, last: int, *, follow: bool) -> None:
        """Shows the output of the task's attempts up to `last` that was not shown yet."""
        position = self._positions.setdefault(index, _LogPosition())
        while True:
            request = pb.LogsRequest(
                job=self._job,
                task=index,
                attempt=position.number,
                offset=position.offset,
                follow=follow and position.number == last,
            )
            try:
                async for chunk in self._client.calls.logs(request):
                    position.offset = chunk.offset + len(chunk.text)
                    self._show(index, chunk.text)
            except NotFound:
                # The log of a deleted attempt is gone.
                pass
            if position.number >= last:
                return
            position.number, position.offset = position.number + 1, 0

    async def _retrying(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call while the controller restarts, because the job continues."""
        for failures, wait in enumerate(_RETRIES.waits(self._rng)):
            try:
                return await call()
            except Retry:
                if not failures:
                    self._report("lost the connection to the controller; trying again")
                await self._clock.sleep(wait)
        return await call()


class LineMultiplexer:
    """Output of several tasks at once: complete lines, each with the number of its task.

    A line that was overwritten, e.g. a progress bar, is shown in its final form.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._open: dict[int, bytes] = {}

    def show(self, index: int, text: bytes) -> None:
        whole, newline, rest = text.rpartition(b"\n")
        if newline:
            mark, whole = b"[%d] " % index, self._open.pop(index, b"") + whole
            self._write(b"".join(mark + _last(line.rstrip(b"\r")) + b"\n" for line in whole.split(b"\n")))
        # Overwritten text is dropped, because progress bars may run for days.
        self._open[index] = _last(self._open.get(index, b"") + rest)
        if len(self._open[index]) > _LINE_BYTES_MAX:
            self.show(index, b"\n")

    def close(self) -> None:
        """Shows the last lines without a newline."""
        for index in sorted(self._open):
            if self._open[index]:
                self.show(index, b"\n")


def _last(line: bytes) -> bytes:
    """Final form of an overwritten line. A trailing carriage return may still be followed by a newline."""
    return line[line.rfind(b"\r", 0, len(line.rstrip(b"\r"))) + 1 :]
