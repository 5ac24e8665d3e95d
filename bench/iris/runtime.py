"""The process runtime beside what bounds it: a bare fork, xargs, a pool of the standard library."""

import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import anyio
import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none

from bench.kit import Report
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import AttemptId, Command, Digest, FunctionCall, Resources, TaskEnvironment
from neorion.iris.ports import AttemptSpec
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds

TASKS = 400
# What a worker of a few cores keeps in flight when its tasks are short.
AT_ONCE = 16
IDS = SystemIds()

# What a preloaded Python can do at best: fork, one word through a pipe, reap; four at a time.
FORK_LIMIT = """
import gc, os, sys, time
import cloudpickle, msgspec
gc.collect(); gc.freeze()
count, live, began = int(sys.argv[1]), 0, time.perf_counter()
for _ in range(count):
    if live == 4:
        os.wait(); live -= 1
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, b"!"); os._exit(0)
    os.close(writing); os.read(reading, 1); os.close(reading)
    live += 1
while live:
    os.wait(); live -= 1
print(count / (time.perf_counter() - began))
"""


@dataclass(frozen=True)
class Bench:
    """One fork server for all rounds."""

    root: Path

    def order(self, *, command: bool = False, pool: str = "", memory: int = 0) -> AttemptSpec:
        entry = Command(("true",)) if command else FunctionCall(Digest("any"))
        function = None if command else self.root / "function"
        return AttemptSpec(
            IDS.new(AttemptId),
            entry,
            TaskEnvironment(),
            (),
            Resources(memory=memory),
            function=function,
            pool=pool,
        )

    def rate(self, count: int = TASKS, at_once: int = AT_ONCE, **kind: object) -> float:
        """Tasks per second, from the first start to the last end that the worker hears of."""
        took, _ = anyio.run(self._run, count, at_once, kind)
        return count / took

    def span_ms(self, **kind: object) -> float:
        """From start to the end that the worker hears of, one at a time."""
        return statistics.median(anyio.run(self._run, 30, 1, kind)[1]) * 1e3

    async def _run(self, count: int, at_once: int, kind: dict[str, object]) -> tuple[float, list[float]]:
        ended: dict[AttemptId, anyio.Event] = {}
        spans: list[float] = []
        took = 0.0
        done: list[AttemptId] = []
        numbers = iter(range(count))

        async def listen(runtime: ProcessRuntime) -> None:
            async for batch in runtime.changes():
                for seen in batch:
                    if seen.end is not None and seen.attempt in ended:
                        assert seen.end.well, seen
                        ended.pop(seen.attempt).set()

        async def work(runtime: ProcessRuntime) -> None:
            for _ in numbers:
                order = self.order(**kind)  # pyright: ignore[reportArgumentType] -- named by the callers below
                event = ended[order.attempt] = anyio.Event()
                start = time.perf_counter()
                await runtime.start(order)
                await event.wait()
                spans.append(time.perf_counter() - start)
                done.append(order.attempt)

        async with ProcessRuntime(self.root / "runtime", SystemClock()) as runtime:
            await runtime.renew(Duration.of(minutes=5))
            async with anyio.create_task_group() as listening:
                listening.start_soon(listen, runtime)
                began = time.perf_counter()
                async with anyio.create_task_group() as group:
                    for _ in range(at_once):
                        group.start_soon(work, runtime)
                took = time.perf_counter() - began
                listening.cancel_scope.cancel()
            async with anyio.create_task_group() as group:
                for attempt in done:
                    group.start_soon(runtime.forget, attempt)
        return took, spans


def fork_limit(count: int = TASKS) -> float:
    done = subprocess.run(
        [sys.executable, "-c", FORK_LIMIT, str(count)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def xargs() -> float:
    began = time.perf_counter()
    subprocess.run(["xargs", "-P4", "-n1", "true"], input="x\n" * TASKS, text=True, check=True)
    return TASKS / (time.perf_counter() - began)


def executor(pool: ProcessPoolExecutor) -> float:
    began = time.perf_counter()
    for future in [pool.submit(int) for _ in range(TASKS)]:
        future.result()
    return TASKS / (time.perf_counter() - began)


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(2) as pool:
        bench = Bench(Path(folder))
        data: bytes = cloudpickle.dumps(lambda: None)  # pyright: ignore[reportUnknownMemberType] -- untyped
        (bench.root / "function").write_bytes(data)
        bench.rate(20)
        limit = ("fork + pipe + reap from a preloaded Python", fork_limit)
        report.compare("functions, a process each", "tasks/s", bench.rate, limit)
        report.compare(
            "commands, a process each",
            "tasks/s",
            lambda: bench.rate(command=True),
            ("xargs -P4 true", xargs),
        )
        report.compare(
            "functions in warm processes",
            "tasks/s",
            lambda: bench.rate(4 * TASKS, pool="warm"),
            ("ProcessPoolExecutor of 2", lambda: executor(pool)),
        )
        report.compare(
            "functions with a memory limit",
            "tasks/s",
            lambda: bench.rate(TASKS // 2, memory=1 << 30),
            limit,
        )
        report.alone("one function, start to end", "ms", bench.span_ms)
        report.alone("one command, start to end", "ms", lambda: bench.span_ms(command=True))
        report.alone("one warm function, start to end", "ms", lambda: bench.span_ms(pool="warm"))
        anyio.run(_end, bench.root)


async def _end(root: Path) -> None:
    async with ProcessRuntime(root / "runtime", SystemClock()) as runtime:
        await runtime.renew(Duration(1))
