"""Builders of views with defaults for everything that a test is not about."""

from collections.abc import Mapping, Sequence

from neorion.iris.model import (
    AttemptId,
    Constraint,
    JobId,
    JobView,
    Placement,
    PriorityBand,
    Resources,
    RunningView,
    SliceId,
    WorkerId,
    WorkerView,
)
from neorion.keel.base import Duration, Instant, Quantity

# Time of every built view; the value does not matter.
NOW = Instant(1_800_000_000_000_000_000)
ANYWHERE = Placement()


def ago(span: str) -> Instant:
    return NOW - Duration.parse(span)


def resources(
    cpu: str = "1", memory: str = "1Gi", disk: str = "0", gpus: int = 0, variant: str = ""
) -> Resources:
    return Resources(
        Quantity.parse(cpu).milli, Quantity.parse(memory).whole, Quantity.parse(disk).whole, gpus, variant
    )


def worker(
    name: str,
    total: Resources,
    *,
    used: Resources | None = None,
    part_of: str = "",
    attributes: Mapping[str, str] | None = None,
) -> WorkerView:
    """A worker of the slice `part_of`, or of a separate slice."""
    free = total if used is None else total - used
    return WorkerView(WorkerId(name), SliceId(part_of or f"slice-of-{name}"), attributes or {}, total, free)


def placement(*constraints: str, prefers: Sequence[str] = (), gang: str = "", spread: str = "") -> Placement:
    required = [Constraint.parse(text) for text in constraints]
    preferred = [Constraint.parse(text, required=False) for text in prefers]
    return Placement((*required, *preferred), gang, spread)


def job(
    name: str,
    asks: Resources,
    tasks: int = 1,
    *,
    user: str = "ada",
    band: PriorityBand = PriorityBand.INTERACTIVE,
    where: Placement = ANYWHERE,
) -> JobView:
    """A job that was submitted a minute ago."""
    return JobView(JobId(name), user, band, asks, where, ago("1m"), range(tasks))


def running(
    name: str,
    on: WorkerView,
    holds: Resources,
    *,
    of: str = "",
    band: PriorityBand = PriorityBand.BATCH,
    since: str = "1h",
) -> RunningView:
    """An attempt of bob's gang `of`, or of a separate job."""
    mine = JobId(of or f"job-of-{name}")
    return RunningView(AttemptId(name), mine, on.id, "bob", band, holds, bool(of), ago(since))
