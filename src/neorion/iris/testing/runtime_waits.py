"""Waits for tests of all runtimes."""

from contextlib import aclosing
from pathlib import Path

import anyio

from neorion.iris.adapters.runtimes.process import syscalls
from neorion.iris.model import AttemptId
from neorion.iris.ports import AttemptExit, AttemptStatus, Phase, Runtime


async def reaches(runtime: Runtime, attempt: AttemptId, phase: Phase) -> AttemptStatus:
    """Waits until the attempt is in this phase or past it."""
    order = list(Phase)
    async with aclosing(runtime.changes()) as changes:
        async for batch in changes:
            for seen in batch:
                if seen.attempt == attempt and order.index(seen.phase) >= order.index(phase):
                    return seen
    raise AssertionError("the stream of changes ended")


async def ended(runtime: Runtime, attempt: AttemptId) -> AttemptExit:
    end = (await reaches(runtime, attempt, Phase.ENDED)).end
    assert end is not None  # noqa: S101 -- an ended attempt has an end
    return end


async def logged(runtime: Runtime, attempt: AttemptId, text: str) -> None:
    """Waits until the attempt's log holds the text."""
    await reaches(runtime, attempt, Phase.RUNNING)
    await written(Path(runtime.log(attempt)), text)


async def written(path: Path, text: str) -> None:
    """Waits with inotify, without polling, until the file contains the text."""
    with syscalls.Modifications() as modifications:
        while True:
            modifications.watch(str(path))
            if _holds(path, text):
                return
            await anyio.wait_readable(modifications.fd)
            modifications.read()


def _holds(path: Path, text: str) -> bool:
    return text in path.read_text(errors="replace")
