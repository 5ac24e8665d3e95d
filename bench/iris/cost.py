"""Processor time per isolated task, by who spends it: steadier on a busy machine than any rate."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.iris.runtime import FORK_LIMIT
from bench.kit import Report
from neorion.iris.client import IrisClient
from neorion.iris.client.options import Work

TASKS = 1000
ROUNDS = 3
SMALL: Mapping[str, str | float] = {"cpu": 0.1, "memory": "16Mi"}
UNLIMITED: Mapping[str, str | float] = {"cpu": 0, "memory": 0}
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_FORKSERVER = "process.forkserver"


@dataclass(frozen=True, slots=True)
class Process:
    """A line of /proc: processor time in seconds, its own and that of the children it has buried."""

    pid: int
    parent: int
    command: str
    own: float
    buried: float


def processes() -> dict[int, Process]:
    found: dict[int, Process] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_text().replace("\0", " ")
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            times = [int(field) / _TICKS_PER_S for field in fields[11:15]]
            found[int(entry.name)] = Process(
                int(entry.name), int(fields[1]), command, sum(times[:2]), sum(times[2:])
            )
    return found


def spent(folder: str) -> dict[str, float]:
    """Seconds by part of the one cluster that lives in this folder."""
    everything = processes()
    sums: dict[str, float] = {"controller": 0, "workers": 0, "fork servers": 0, "tasks": 0}
    for one in everything.values():
        if folder not in one.command:
            continue
        if _FORKSERVER in one.command:
            above = everything.get(one.parent)
            guardian = above is None or _FORKSERVER not in above.command
            # The guardian's child is the fork server; what that has forked is counted when it is buried.
            if not guardian and above is not None and _FORKSERVER not in _command(everything, above.parent):
                sums["fork servers"] += one.own
                sums["tasks"] += one.buried
        elif " worker serve " in one.command:
            sums["workers"] += one.own
        else:
            sums["controller"] += one.own
    return sums


def _command(everything: dict[int, Process], pid: int) -> str:
    return everything[pid].command if pid in everything else ""


def fork_cost() -> float:
    """Microseconds of a bare fork, both sides, as in the reference for rates."""
    script = FORK_LIMIT + "\ntimes = os.times(); print(sum(times[:4]))"
    base, full = (
        float(
            subprocess.run(
                [sys.executable, "-c", script, str(count)], capture_output=True, text=True, check=True
            ).stdout.split()[-1]
        )
        for count in (1, TASKS + 1)
    )
    return (full - base) / TASKS * 1e6


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as place:
        os.environ["TMPDIR"] = tempfile.tempdir = place
        with IrisClient.local(workers=2) as client:
            client.wait(client.submit(_nothing, "warm-up", replicas=50, resources=SMALL))
            numbers = iter(range(1000))
            for title, work in (("functions", _nothing), ("commands", ["true"])):
                for limits, resources in (("", SMALL), (" without limits", UNLIMITED)):

                    def cost(work: Work = work, resources: Mapping[str, str | float] = resources) -> float:
                        before = spent(place)
                        client.wait(
                            client.submit(work, f"cost-{next(numbers)}", replicas=TASKS, resources=resources)
                        )
                        return _told(before, spent(place))

                    report.compare(
                        f"isolated {title}{limits}", "µs of CPU", cost, ("bare fork", fork_cost), ROUNDS
                    )


def _told(before: dict[str, float], after: dict[str, float]) -> float:
    """Microseconds per task, all in all; the parts are printed."""
    parts = {name: (after[name] - before[name]) / TASKS * 1e6 for name in after}
    print("   ", ", ".join(f"{name} {value:.0f}" for name, value in parts.items()), flush=True)
    return sum(parts.values())


def _nothing() -> None:
    return None
