"""The tasks of one process: one root task group, a name for each task, and an orderly end."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import anyio
from anyio.abc import TaskStatus

from neorion.keel.base.units import Duration
from neorion.keel.run.loop import Loop

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Work = Callable[[], Coroutine[Any, Any, None]]


class StartableTask(Protocol[T_co]):
    """A task that reports when it is ready, and with which value: `ready.started(port)`."""

    def __call__(self, *, task_status: TaskStatus[T_co]) -> Coroutine[Any, Any, None]: ...


class Supervisor(AbstractAsyncContextManager["Supervisor"]):
    """Tasks that start and end together.

    A task that fails ends the others, and its error leaves the `async with`. `stop` ends them in order: loops finish
    their tick, tasks that wait for `stopping` return, and the rest is cancelled after `grace`. Cancellation is repeated
    until a task has ended, so a task cannot survive by swallowing one CancelledError.
    """

    def __init__(self, grace: Duration = Duration.of(seconds=10)) -> None:
        self.stopping = anyio.Event()
        self._grace = grace
        self._group = anyio.create_task_group()
        self._loops: list[Loop] = []

    def spawn(self, name: str, work: Work) -> None:
        """Starts a task. Its failure ends all tasks of this supervisor."""
        self._group.start_soon(work, name=name)

    async def start(self, name: str, work: StartableTask[T]) -> T:
        """Starts a task like `spawn`. Returns when the task reports that it is ready, with the reported value."""
        return await self._group.start(work, name=name)

    def loop(self, loop: Loop) -> None:
        self._loops.append(loop)
        self.spawn(loop.name, loop.run)

    def stop(self) -> None:
        if self.stopping.is_set():
            return
        self.stopping.set()
        for loop in self._loops:
            loop.stop()
        self._group.cancel_scope.deadline = anyio.current_time() + self._grace.seconds

    def cancel(self) -> None:
        """Cancels all tasks at once, without grace."""
        self.stopping.set()
        self._group.cancel_scope.cancel()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._group.__aexit__(kind, error, trace)
