"""Output formats of logs: raw, with the task's number, or JSON."""

import codecs
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from neorion.iris.cli.log_follower import TASKS_MAX, LineMultiplexer
from neorion.iris.client import AsyncIrisClient
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import NotFound
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table

Show = Callable[[int, bytes], None]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A chunk of a task's output."""

    task: int
    text: str


_WRITTEN: Final[Table[LogRecord]] = Table(
    (Column("TASK", lambda it: it.task), Column("TEXT", lambda it: it.text)), name=lambda it: str(it.task)
)


@contextmanager
def shown(out: Output, *, several: bool) -> Generator[Show]:
    """Yields a function that shows the output of tasks. With several tasks, lines have their task's number."""
    decoders: dict[int, codecs.IncrementalDecoder] = {}
    emit = out.watch(_WRITTEN)

    def decoded(index: int, text: bytes) -> str:
        decoder = decoders.setdefault(index, codecs.getincrementaldecoder("utf-8")("replace"))
        return decoder.decode(text)

    if out.shared.output in (Format.JSON, Format.YAML):
        yield lambda index, text: emit(LogRecord(index, decoded(index, text)))
    elif several:
        lines = LineMultiplexer(lambda text: out.log(text.decode(errors="replace")))
        yield lines.show
        lines.close()
    else:
        yield lambda index, text: out.log(decoded(index, text))


async def past(client: AsyncIrisClient, request: pb.LogsRequest, show: Show) -> int:
    """Shows the current output of one attempt, or its tail. Returns the offset of its end."""
    end = 0
    async for chunk in client.calls.logs(request):
        end = chunk.offset + len(chunk.text)
        show(request.task, chunk.text)
    return end


async def tasks_of(client: AsyncIrisClient, out: Output, job: str, only: int | None) -> list[pb.Task]:
    """Tasks whose logs are selected."""
    tasks = await client.tasks(job)
    if only is not None:
        if only >= len(tasks):
            raise NotFound(
                "iris.no_task",
                f"{job} has tasks 0 to {len(tasks) - 1}.",
                hint=f"See them with: iris task list {job}.",
            )
        return [tasks[only]]
    if len(tasks) > TASKS_MAX:
        out.warn(f"Only the first {TASKS_MAX} of {len(tasks)} tasks are shown. Select another with --task.")
    return tasks[:TASKS_MAX]
