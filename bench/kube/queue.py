"""The work queue: keys added, taken and given back, beside asyncio's own queue, which neither dedupes nor delays."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from bench.kit import Report
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import WorkQueue

KEYS = [ObjectKey("bench", f"thing-{number}") for number in range(200_000)]


async def ours() -> None:
    queue = WorkQueue[ObjectKey](SystemClock(), system_rng())
    for key in KEYS:
        queue.add(key)
    for _ in KEYS:
        taken = await queue.take()
        assert taken is not None
        queue.finish(taken.key)


async def plain() -> None:
    queue = asyncio.Queue[ObjectKey]()
    for key in KEYS:
        queue.put_nowait(key)
    for _ in KEYS:
        await queue.get()
        queue.task_done()


def rate(work: Callable[[], Awaitable[None]]) -> float:
    async def main() -> float:
        began = time.process_time()
        await work()
        return len(KEYS) / (time.process_time() - began)

    return asyncio.run(main())


def run(report: Report) -> None:
    report.compare(
        "keys added, taken and finished",
        "per CPU second",
        lambda: rate(ours),
        ("asyncio.Queue", lambda: rate(plain)),
    )
