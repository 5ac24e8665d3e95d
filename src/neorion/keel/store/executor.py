"""Executors for a store's synchronous work: a separate thread, or the event loop in simulations."""

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
        """Starts a job that reports its own end with `deliver`."""
        ...

    def deliver(self, news: Callable[[], None]) -> None:
        """Called by a job: runs `news` on the event loop."""
        ...

    async def run(self, job: Callable[[], T]) -> T:
        """Runs a job in its turn; a cancelled caller still waits for the end of it."""
        ...

    async def beside(self, job: Callable[[], T]) -> T:
        """Runs a job in parallel to the others."""
        ...

    async def aclose(self) -> None: ...


class ThreadExecutor:
    """One thread, so that the connection is used by a single thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keel.store")

    def start(self, job: Callable[[], None]) -> None:
        self._thread.submit(job)

    def deliver(self, news: Callable[[], None]) -> None:
        # If the loop is closed, no caller waits for the result.
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
    """Runs jobs in the event loop without threads, so that a simulation repeats."""

    def start(self, job: Callable[[], None]) -> None:
        job()

    def deliver(self, news: Callable[[], None]) -> None:
        news()

    async def run(self, job: Callable[[], T]) -> T:
        return job()

    async def beside(self, job: Callable[[], T]) -> T:
        # Lets other tasks run, as a thread would.
        await anyio.lowlevel.checkpoint()
        return job()

    async def aclose(self) -> None:
        pass
