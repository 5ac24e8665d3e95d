"""The process of strangers, and the figures of heartbeats beside them."""

import asyncio
import resource
import statistics
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from bench.kit import Report

# A heartbeat may take this many times its quiet time while a server is attacked.
GOAL = 3.0


@asynccontextmanager
async def attacked(address: str, *login: str) -> AsyncGenerator[None]:
    """All attacks stand while the block runs."""
    command = [sys.executable, "-m", "bench.strangers", address, *login]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline(), "the attack did not begin"
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def raise_files() -> None:
    """A machine of a fleet is a connection: this process holds one end of each, and the server the other."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def p99_ms(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98] * 1000


def compare(report: Report, name: str, quiet: list[float], beaten: list[float]) -> None:
    """One round: p99 of a heartbeat under attack beside its quiet value of the same run."""
    figure = report.compare(
        f"{name}: p99 of a heartbeat under attack",
        "ms",
        lambda: p99_ms(beaten),
        ("quiet", lambda: p99_ms(quiet)),
        rounds=1,
    )
    report.alone(f"{name}: heartbeats under attack", "", lambda: float(len(beaten)), rounds=1)
    met = "met" if max(figure.ratios) <= GOAL else "NOT MET"
    print(f"goal: at most {GOAL:.0f} times the quiet value, and no lease lost: {met}", flush=True)
