"""Whole jobs through a real controller and real workers, beside what the machine can do at best."""

import os
import time
from collections.abc import Callable

from bench.iris.runtime import fork_limit
from bench.kit import Report
from neorion.iris.client import IrisClient

TASKS = 300
ITEMS = 10_000
_SMALL = {"cpu": 0.1, "memory": "16Mi"}


def run(report: Report) -> None:
    with IrisClient.local(workers=2) as client:
        client.wait(client.submit(lambda: None, "warm-up"))
        numbers = iter(range(1_000_000))

        def timed(work: Callable[[str], object]) -> float:
            name = f"bench-{next(numbers)}"
            began = time.perf_counter()
            work(name)
            return time.perf_counter() - began

        report.compare(
            "one job, submit to value, a process of its own",
            "ms",
            lambda: 1000 * timed(lambda name: client.wait(client.submit(lambda: 42, name))),
            ("bare fork, run, reap", lambda: 1000 / _forks(50)),
            rounds=15,
        )
        report.compare(
            f"{TASKS} functions, a process each",
            "tasks/s",
            lambda: (
                TASKS
                / timed(
                    lambda name: client.wait(
                        client.submit(lambda: None, name, replicas=TASKS, resources=_SMALL)
                    )
                )
            ),
            ("fork + pipe + reap from a preloaded Python", lambda: fork_limit(TASKS)),
        )
        report.compare(
            f"map over {ITEMS} items",
            "items/s",
            lambda: ITEMS / timed(lambda name: client.map(_next, range(ITEMS), name)),
            ("one process, a loop", _loop),
        )


def _next(item: int) -> int:
    return item + 1


def _forks(count: int) -> float:
    """Forks of this process, which has Python and the client loaded, one after the other."""
    began = time.perf_counter()
    for _ in range(count):
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    return count / (time.perf_counter() - began)


def _loop() -> float:
    began = time.perf_counter()
    _ = [item + 1 for item in range(ITEMS)]
    return ITEMS / (time.perf_counter() - began)
