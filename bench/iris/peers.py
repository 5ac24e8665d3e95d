"""The same work for iris and for other systems, in turns; and whether the goals are met."""

import itertools
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from bench.iris.runtime import fork_limit
from bench.kit import Figure, Report
from bench.peers import Absent, Peer
from neorion.iris.client import IrisClient, Job

# So small that neither cores nor memory decide how many run at once.
SMALL: Mapping[str, str | float] = {"cpu": 0.05, "memory": "16Mi"}
UNLIMITED: Mapping[str, str | float] = {"cpu": 0, "memory": 0}
LATENCY_MS_MAX = 30
OF_THE_FORK_LIMIT_MIN = 0.5
MAP_TIMES_MIN = 5


def nothing() -> None:
    return None


def answer() -> int:
    return 42


def following(item: int) -> int:
    return item + 1


@dataclass(frozen=True, slots=True)
class Ours:
    """This side: a controller and two workers of its own. Every verb returns seconds."""

    client: IrisClient
    numbers: "itertools.count[int]"

    def one(self) -> float:
        def work(name: str) -> None:
            assert self.client.wait(self.client.submit(answer, name)) == 42

        return self._timed(work)

    def tasks(self, count: int, resources: Mapping[str, str | float] = SMALL) -> float:
        return self._timed(
            lambda name: self.client.wait(
                self.client.submit(nothing, name, replicas=count, resources=resources)
            )
        )

    def commands(self, count: int, resources: Mapping[str, str | float] = SMALL) -> float:
        return self._timed(
            lambda name: self.client.wait(
                self.client.submit(["true"], name, replicas=count, resources=resources)
            )
        )

    def jobs(self, count: int) -> float:
        def work(name: str) -> None:
            jobs: list[Job] = [
                self.client.submit(nothing, f"{name}-{number}", resources=SMALL) for number in range(count)
            ]
            for job in jobs:
                self.client.wait(job)

        return self._timed(work)

    def map(self, count: int) -> float:
        def work(name: str) -> None:
            assert self.client.map(following, range(count), name)[-1] == count

        return self._timed(work)

    def _timed(self, work: Callable[[str], object]) -> float:
        name = f"bench-{next(self.numbers)}"
        began = time.perf_counter()
        work(name)
        return time.perf_counter() - began


def run(report: Report) -> None:
    with IrisClient.local(workers=2) as client:
        ours = Ours(client, itertools.count())
        ours.one()
        ours.tasks(50)
        latency = report.alone("one job, submit to value", "ms", lambda: 1000 * ours.one(), rounds=15)
        limit = ("fork limit", lambda: fork_limit(1000))
        # Bare forks have no control groups either.
        isolated = report.compare(
            "1,000 isolated functions", "tasks/s", lambda: 1000 / ours.tasks(1000, UNLIMITED), limit
        )
        report.compare(
            "1,000 isolated functions in control groups", "tasks/s", lambda: 1000 / ours.tasks(1000), limit
        )
        for name, compare in SIDES.items():
            try:
                with Peer(name) as peer:
                    compare(report, ours, peer)
            except Absent as absent:
                print(f"{name} is not compared: {absent}", flush=True)
        _growth(ours)
        _judge(report, latency, isolated)


def _marin_iris(report: Report, ours: Ours, peer: Peer) -> None:
    report.compare(
        "one job, submit to its end", "s", ours.one, (peer.name, lambda: peer.seconds("one")), rounds=5
    )
    for work, mine, count, rounds in (
        ("tasks", ours.tasks, 200, 3),
        ("tasks", ours.tasks, 1000, 1),
        ("jobs", ours.jobs, 1000, 1),
    ):
        _rates(report, (f"{count:,} isolated functions as {work}", work, mine), peer, (count, count), rounds)


def _hyperqueue(report: Report, ours: Ours, peer: Peer) -> None:
    # It limits nothing, so ours are not limited here either; it also looks for ends only once in a second.
    free = partial(ours.commands, resources=UNLIMITED)
    _rates(report, ("1,000 commands without limits", "commands", free), peer, (1000, 1000))
    _rates(report, ("1,000 commands in control groups", "commands", ours.commands), peer, (1000, 1000), 3)
    _rates(report, ("200 isolated functions", "tasks", ours.tasks), peer, (200, 40), 3)


def _ray(report: Report, ours: Ours, peer: Peer) -> None:
    _rates(report, ("200 isolated functions", "tasks", ours.tasks), peer, (200, 10), 3)
    _maps(report, ours, peer)


def _maps(report: Report, ours: Ours, peer: Peer) -> None:
    _rates(report, ("map over 10,000 items", "map", ours.map), peer, (10_000, 2_000), 3)
    _rates(report, ("map over 10,000, in 64 parts by hand", "chunks", ours.map), peer, (10_000, 10_000), 3)


Side = Callable[[Report, Ours, Peer], None]
SIDES: dict[str, Side] = {
    "hyperqueue": _hyperqueue,
    "dask": _maps,
    "ray": _ray,
    "marin-iris": _marin_iris,
}


def _rates(
    report: Report,
    work: tuple[str, str, Callable[[int], float]],
    peer: Peer,
    counts: tuple[int, int],
    rounds: int = 5,
) -> None:
    """Per second. A slow peer gets less of the same work."""
    title, name, mine = work
    own, other = counts
    report.compare(
        title,
        "/s",
        lambda: own / mine(own),
        (f"{peer.name} ({other:,})", lambda: peer.rate(name, other)),
        rounds=rounds,
    )


def _growth(ours: Ours) -> None:
    for title, work, count in (
        ("isolated functions", ours.tasks, 200),
        ("separate jobs", ours.jobs, 100),
        ("map", ours.map, 10_000),
    ):
        small = statistics.median(count / work(count) for _ in range(3))
        large = 10 * count / work(10 * count)
        print(
            f"growth, {title}: {count:,} at {small:,.0f}/s, {10 * count:,} at {large:,.0f}/s; ratio {large / small:.2f}"
        )


def _judge(report: Report, latency: Figure, isolated: Figure) -> None:
    def say(goal: str, figure: float, *, met: bool) -> None:
        print(f"{'met   ' if met else 'MISSED'} {goal}: {figure:.2f}")

    median = statistics.median(latency.ours)
    say(f"one job in at most {LATENCY_MS_MAX} ms", median, met=median <= LATENCY_MS_MAX)
    share = statistics.median(isolated.ratios)
    say("isolated functions, of the fork limit at least 0.5", share, met=share >= OF_THE_FORK_LIMIT_MIN)
    for figure in report.figures:
        if not figure.reference:
            continue
        times = statistics.median(figure.ratios)
        if figure.name == "1,000 commands without limits":
            say("commands, times HyperQueue at least 1", times, met=times >= 1)
        if figure.name == "map over 10,000 items":
            say(
                f"map, times {figure.reference_name} at least {MAP_TIMES_MIN}",
                times,
                met=times >= MAP_TIMES_MIN,
            )
