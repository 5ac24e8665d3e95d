"""Judgements about gangs: what was bound, when, and whether that is all or nothing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]


def bound(pods: Iterable[Json]) -> int:
    """Counts the pods that have a node."""
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods)


def whole_or_not_at_all(counts: Sequence[int], size: int, window: float) -> Assertion:
    """`counts` are the numbers of bound pods seen over a window in which one accelerator was missing."""
    partial = sorted({count for count in counts if 0 < count < size})
    seen = (
        f"{partial[-1]} of {size} pods were bound" if partial else f"no part of {size} pods was bound alone"
    )
    return Assertion(
        "a gang that does not fit is not placed in part",
        not partial,
        f"{seen} in {window:g} s with one accelerator too few.",
    )


def waits_for_room(counts: Sequence[int], size: int) -> Assertion:
    most = max(counts, default=0)
    return Assertion(
        "a gang that does not fit waits",
        most == 0,
        f"At most {most} of {size} pods were bound while one accelerator was missing.",
    )


def placed_whole(count: int, size: int, seconds: float) -> Assertion:
    return Assertion(
        "a gang that fits is placed whole",
        count == size,
        f"{count} of {size} pods were bound {seconds:.1f} s after room was made.",
    )


def both_finish(finished: Mapping[str, bool]) -> Assertion:
    left = sorted(name for name, done in finished.items() if not done)
    return Assertion(
        "two gangs that do not fit together both finish",
        not left,
        f"These did not finish: {', '.join(left)}."
        if left
        else f"{len(finished)} gangs finished one after the other.",
    )
