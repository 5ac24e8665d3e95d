"""Where a store's synchronous work runs: a thread of its own, or, in simulations, inside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

T = TypeVar("T")


class SerialExecutor(Protocol):
    """Runs jobs one after another, in order."""

    def start(self, job: Callable[[], None]) -> None:
        """Begins a job that tells its own end by `deliver`."""
        ...

    def deliver(self, news: Callable[[], None]) -> None:
        """Called by a job: runs `news` on the event loop."""
        ...

    async def run(self, job: Callable[[], T]) -> T:
        """Runs a job in its turn; a cancelled caller still waits for the end of it."""
        ...

    async def beside(self, job: Callable[[], T]) -> T:
        """Runs a job that need not wait for the lane."""
        ...

    async def aclose(self) -> None: ...


class ThreadExecutor:
    """One thread, so that one connection is used by nobody else."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keel.store")

    def start(self, job: Callable[[], None]) -> None:
        self._thread.submit(job)

    def deliver(self, news: Callable[[], None]) -> None:
        # A closed loop has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(news)

    async def run(self, job: Callable[[], T]) -> T:
        answer = asyncio.wrap_future(self._thread.submit(job))
        with anyio.CancelScope(shield=True):
            await asyncio.wait([answer])
        return answer.result()

    async def beside(self, job: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(job)

    async def aclose(self) -> None:
        self._thread.shutdown(wait=False)


class InlineExecutor:
    """No threads: what happens is decided by the event loop alone, so that a simulation repeats."""

    def start(self, job: Callable[[], None]) -> None:
        job()

    def deliver(self, news: Callable[[], None]) -> None:
        news()

    async def run(self, job: Callable[[], T]) -> T:
        return job()

    async def beside(self, job: Callable[[], T]) -> T:
        # Others get their turn here, as they would with a thread.
        await anyio.lowlevel.checkpoint()
        return job()

    async def aclose(self) -> None:
        pass
