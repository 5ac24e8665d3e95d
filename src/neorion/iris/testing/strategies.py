"""Hypothesis strategies for views: small, crowded clusters with many combinations."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from hypothesis import strategies as st

from neorion.iris.model import (
    AttemptId,
    ClusterView,
    GroupView,
    JobId,
    JobView,
    Placement,
    PriorityBand,
    Quota,
    Resources,
    RunningView,
    ScaleDelays,
    ScaleFailure,
    ScaleFailureKind,
    SliceId,
    SliceState,
    SliceView,
    UserQuotas,
    WorkerId,
    WorkerShape,
    WorkerView,
)
from neorion.iris.testing.builders import ago, placement
from neorion.keel.base import Duration

_USERS = ("ada", "bob", "eve")
# Few sizes, so that tasks compete for the same room, and uneven ones, so that some room is left over.
_SIZES = (
    Resources(1000, 1),
    Resources(2000, 1, 1),
    Resources(1000, 1, 0, 1),
    Resources(1000, 0, 0, 2, "A100"),
    Resources(0, 0, 0, 4, "H100"),
    Resources(),
)
_TOTALS = (Resources(4000, 4, 2), Resources(4000, 4, 2, 4, "A100"), Resources(4000, 6, 2, 4, "H100"))
_ATTRIBUTES: tuple[dict[str, str], ...] = ({"zone": "a"}, {"zone": "a", "spot": "yes"}, {"zone": "b"}, {})
_PLACEMENTS = (
    Placement(),
    placement(gang="slice"),
    placement(gang="zone"),
    placement("!spot", gang="zone", spread="worker"),
    placement("zone=a"),
    placement("!spot", prefers=["zone=b"]),
    placement("zone in a,b", spread="zone"),
    placement(spread="worker"),
)

_CAPS = (
    UserQuotas(),
    UserQuotas(users={"ada": Quota(tasks=2)}),
    UserQuotas(users={"bob": Quota(tasks=3), "eve": Quota(tasks=1)}),
    UserQuotas(Quota(gpus=4), {"ada": Quota(cpu_milli=3000)}),
    UserQuotas(Quota(memory=2), {"eve": Quota()}),
)


def _one_of_each(*choices: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """One number for a choice of each, which needs far fewer draws than one number per choice."""

    def chosen(number: int) -> list[Any]:
        picked: list[Any] = []
        for options in choices:
            number, at = divmod(number, len(options))
            picked.append(options[at])
        return picked

    return st.integers(0, prod(map(len, choices)) - 1).map(chosen)


def workers(most: int = 4) -> st.SearchStrategy[list[WorkerView]]:
    """Empty workers, two to a slice."""

    def made(parts: list[list[Any]]) -> list[WorkerView]:
        return [
            WorkerView(WorkerId(f"w{number}"), SliceId(f"s{number // 2}"), attributes, total, total)
            for number, (total, attributes) in enumerate(parts)
        ]

    return st.lists(_one_of_each(_TOTALS, _ATTRIBUTES), min_size=1, max_size=most).map(made)


def jobs(most: int = 6) -> st.SearchStrategy[list[JobView]]:
    """Jobs of every kind. Half of them have waited long enough for a reservation."""
    parts = _one_of_each(
        _USERS, tuple(PriorityBand), _SIZES, _PLACEMENTS, ("11m", "1s", "12m", "2s"), (2, 3, 1, 4)
    )

    def made(drawn: list[list[Any]]) -> list[JobView]:
        return [
            JobView(JobId(f"job-{number}"), user, band, asks, where, ago(since), range(tasks))
            for number, (user, band, asks, where, since, tasks) in enumerate(drawn)
        ]

    return st.lists(parts, min_size=2, max_size=most).map(made)


@st.composite
def clusters(draw: st.DrawFn, *, capped: bool = True) -> ClusterView:
    """A cluster whose running attempts fit. Some of them are stopping, and some gangs are about to restart."""
    there = draw(workers())
    waiting = draw(jobs())
    free = [worker.free for worker in there]
    runs: list[RunningView] = []
    for number, part in enumerate(draw(st.lists(_RUNS, min_size=2 * len(there), max_size=5 * len(there)))):
        spot: int = part[0] % len(there)
        run = _run(number, there[spot].id, part[1:])
        if run.resources.fits(replace(free[spot], gpu_variant=run.resources.gpu_variant)):
            free[spot] -= run.resources
            runs.append(run)
    caps = draw(st.sampled_from(_CAPS)) if capped else UserQuotas()
    return ClusterView(
        [replace(worker, free=left) for worker, left in zip(there, free, strict=True)], waiting, runs, caps
    )


_RUNS = _one_of_each(
    range(4),
    ("", "", "", "gang-1", "gang-2", "job-0"),
    _SIZES,
    tuple(PriorityBand),
    ("1m", "2m", "3m"),
    (False, False, False, True),
)


def _run(number: int, worker: WorkerId, part: list[Any]) -> RunningView:
    """Attempts of a gang have one band, like those of a job. If job-0 waits, it is a gang that restarts."""
    gang, holds, band, since, stopping = part
    return RunningView(
        AttemptId(f"attempt-{number}"),
        JobId(gang or f"run-{number}"),
        worker,
        "bob" if gang else _USERS[number % 3],
        PriorityBand.BATCH if gang else band,
        holds,
        bool(gang),
        ago(since),
        stopping,
    )


# Most slices are ready and many of those idle, because otherwise hardly any would be deleted.
_SLICES = _one_of_each(
    (SliceState.READY,) * 4 + tuple(SliceState), ("3h", "45m", "15m"), ("31m", "20m", None, "11m", "1m")
)
_GROUPS = _one_of_each(
    _TOTALS,
    _ATTRIBUTES,
    (1, 2, 3),
    (0, 1, 2),
    (2, 3, 6),
    (1, 2),
    (
        None,
        None,
        *((kind, times, at) for kind in ScaleFailureKind for times in (1, 4) for at in ("10s", "9m")),
    ),
)


@st.composite
def groups(draw: st.DrawFn, most: int = 3) -> list[GroupView]:
    """Scale groups in every state, some of them with more slices than their maximum."""
    found: list[GroupView] = []
    for number, part in enumerate(draw(st.lists(_GROUPS, min_size=1, max_size=most))):
        total, attributes, per_slice, least, limit, priority, trouble = part
        slices = [
            _slice(f"slice-{number}-{index}", *drawn)
            for index, drawn in enumerate(draw(st.lists(_SLICES, max_size=4)))
        ]
        found.append(
            GroupView(
                f"group-{number}",
                priority,
                least,
                WorkerShape(total, attributes, per_slice, limit),
                ScaleDelays(),
                slices,
                None if trouble is None else ScaleFailure(trouble[0], trouble[1], ago(trouble[2])),
            )
        )
    return found


def _slice(name: str, state: SliceState, age: str, idle: str | None) -> SliceView:
    """A slice. A ready one became ready a minute after its creation, and has been idle at most since then."""
    created = ago(age)
    if state is not SliceState.READY:
        return SliceView(SliceId(name), state, created)
    ready = created + Duration.of(minutes=1)
    return SliceView(SliceId(name), state, created, ready, None if idle is None else max(ready, ago(idle)))
