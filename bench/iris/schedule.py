"""One pass of the scheduler, beside a loop that gives each task the first worker it fits on and knows nothing else."""

import gc
import time
from collections.abc import Callable, Sequence

from bench.kit import Report
from neorion.iris.decide import RESERVE_AFTER, UnmetDemand, autoscale, schedule
from neorion.iris.model import (
    AttemptId,
    ClusterView,
    Constraint,
    GroupView,
    JobId,
    JobView,
    Placement,
    PriorityBand,
    Resources,
    RunningView,
    SliceId,
    WorkerId,
    WorkerShape,
    WorkerView,
)
from neorion.keel.base import Instant

NOW = Instant(1_800_000_000_000_000_000)
ROUNDS = 5
H100 = Resources(128_000, 2**40, 2**42, 8, "H100")
SMALL = Resources(8_000, 2**33)
SHAPES = [Resources(1_000 + 200 * n, 2**30 + 2**26 * n, 0, n % 3) for n in range(50)]


def workers(count: int, free: Resources = H100) -> list[WorkerView]:
    return [
        WorkerView(
            WorkerId(f"worker-{n:06}"),
            SliceId(f"slice-{n // 4:06}"),
            {"zone": f"zone-{n % 5}", "rack": f"rack-{n // 16}"},
            H100,
            free,
        )
        for n in range(count)
    ]


def jobs(count: int, tasks: int, shapes: Sequence[Resources], where: Sequence[Placement]) -> list[JobView]:
    """Of twenty users, submitted one after the other."""
    return [
        JobView(
            JobId(f"job-{n:06}"),
            f"user-{n % 20}",
            PriorityBand.INTERACTIVE,
            shapes[n % len(shapes)],
            where[n % len(where)],
            Instant(NOW.ns - RESERVE_AFTER.ns + 1 + n),
            range(tasks),
        )
        for n in range(count)
    ]


def running(
    there: Sequence[WorkerView], each: int, holds: Resources, band: PriorityBand
) -> list[RunningView]:
    return [
        RunningView(
            AttemptId(f"attempt-{at.id}-{n}"),
            JobId(f"old-{at.id}-{n}"),
            at.id,
            f"user-{n}",
            band,
            holds,
            False,
            NOW,
        )
        for at in there
        for n in range(each)
    ]


ANYWHERE = [Placement()]
PICKY = [
    Placement(
        (
            Constraint.parse(f"zone=zone-{n % 5}"),
            Constraint.parse("rack!=rack-7"),
            Constraint.parse(f"rack=rack-{n % 60}", required=False),
        )
    )
    for n in range(60)
]


def full(count: int) -> ClusterView:
    there = workers(count, Resources())
    return ClusterView(
        there, jobs(10_000, 1, SHAPES, ANYWHERE), running(there, 10, SMALL, PriorityBand.INTERACTIVE)
    )


def pushing(count: int) -> ClusterView:
    there = workers(count, Resources())
    return ClusterView(
        there, jobs(10_000, 1, SHAPES, ANYWHERE), running(there, 10, SMALL, PriorityBand.BATCH)
    )


CASES: dict[str, Callable[[], ClusterView]] = {
    "1 job of 10,000 tasks": lambda: ClusterView(workers(1000), jobs(1, 10_000, [SMALL], ANYWHERE)),
    "1,000 jobs of 10 tasks": lambda: ClusterView(workers(1000), jobs(1000, 10, [SMALL], ANYWHERE)),
    "10,000 jobs of 50 shapes": lambda: ClusterView(workers(1000), jobs(10_000, 1, SHAPES, ANYWHERE)),
    "1,250 gangs of 8 by slice": lambda: ClusterView(
        workers(1000), jobs(1250, 8, [Resources(8_000, 2**30, 0, 1)], [Placement(gang="slice")])
    ),
    "1,000 jobs of 10, constraints": lambda: ClusterView(workers(1000), jobs(1000, 10, SHAPES, PICKY)),
    "10,000 jobs, nothing fits": lambda: full(1000),
}

GROWTH: dict[str, Callable[[], ClusterView]] = {
    "1,000 jobs of 10, spread by rack": lambda: ClusterView(
        workers(1000), jobs(1000, 10, [SMALL], [Placement(spread="rack")])
    ),
    "10,000 jobs push 10,000 running": lambda: pushing(1000),
    "x10 tasks: 1 job of 100,000": lambda: ClusterView(
        workers(1000), jobs(1, 100_000, [Resources(1_000, 2**30)], ANYWHERE)
    ),
    "x10 tasks: 10,000 jobs of 10": lambda: ClusterView(workers(1000), jobs(10_000, 10, [SMALL], ANYWHERE)),
    "x10 tasks: 100,000 jobs of 50 shapes": lambda: ClusterView(
        workers(1000), jobs(100_000, 1, SHAPES, ANYWHERE)
    ),
    "x10 workers: 10,000 jobs of 50 shapes": lambda: ClusterView(
        workers(10_000), jobs(10_000, 1, SHAPES, ANYWHERE)
    ),
    "x10 workers: 10,000 jobs, nothing fits": lambda: full(10_000),
}


def first_fit(view: ClusterView) -> list[tuple[JobId, int, WorkerId]]:
    """Each task in turn tries each worker; a job stops at the first task that fits nowhere. No order, no reasons."""
    free = [[w.free.cpu_milli, w.free.memory, w.free.disk, w.free.gpus] for w in view.workers]
    found: list[tuple[JobId, int, WorkerId]] = []
    for job in view.jobs:
        needs = [job.resources.cpu_milli, job.resources.memory, job.resources.disk, job.resources.gpus]
        required = [each for each in job.placement.constraints if each.required]
        spots = [
            spot
            for spot, worker in enumerate(view.workers)
            if all(each.holds(worker.attributes) for each in required)
        ]
        if job.placement.gang:
            _first_group(view, job, needs, (free, found))
            continue
        for task in job.waiting:
            for spot in spots:
                there = free[spot]
                if (
                    there[0] >= needs[0]
                    and there[1] >= needs[1]
                    and there[2] >= needs[2]
                    and there[3] >= needs[3]
                ):
                    free[spot] = [have - need for have, need in zip(there, needs, strict=True)]
                    found.append((job.id, task, view.workers[spot].id))
                    break
            else:
                break
    return found


def _first_group(
    view: ClusterView,
    job: JobView,
    needs: list[int],
    state: tuple[list[list[int]], list[tuple[JobId, int, WorkerId]]],
) -> None:
    free, found = state
    slices: dict[SliceId, list[int]] = {}
    for spot, worker in enumerate(view.workers):
        slices.setdefault(worker.slice, []).append(spot)
    for spots in slices.values():
        rooms = [min(free[spot][d] // needs[d] for d in range(4) if needs[d]) for spot in spots]
        if sum(rooms) < len(job.waiting):
            continue
        tasks = iter(job.waiting)
        for spot, room in zip(spots, rooms, strict=True):
            for _, task in zip(range(room), tasks, strict=False):
                free[spot] = [have - need for have, need in zip(free[spot], needs, strict=True)]
                found.append((job.id, task, view.workers[spot].id))
        return


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def run(report: Report) -> None:
    for name, make in CASES.items():
        view = make()
        report.compare(
            f"schedule, 1,000 workers, {name}",
            "ms",
            lambda view=view: timed(lambda: schedule(view, NOW)),
            ("first fit", lambda view=view: timed(lambda: first_fit(view))),
            ROUNDS,
        )
    for name, make in GROWTH.items():
        view = make()
        report.alone(f"schedule, {name}", "ms", lambda view=view: timed(lambda: schedule(view, NOW)), ROUNDS)
    demand = [
        UnmetDemand(job.id, job.resources, job.placement, 1, Instant(0))
        for job in jobs(10_000, 1, SHAPES, ANYWHERE)
    ]
    groups = [GroupView(f"group-{n}", n, 0, WorkerShape(H100, {}, 4, 100)) for n in range(5)]
    report.alone(
        "autoscale, 10,000 jobs, 5 groups", "ms", lambda: timed(lambda: autoscale(groups, demand, NOW))
    )
