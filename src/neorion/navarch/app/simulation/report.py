"""Several runs of one or two sides, joined: as a table, as JSON, and for the page."""

from collections.abc import Callable, Sequence
from statistics import fmean

import msgspec
from msgspec import Struct

from neorion.navarch.app.simulation.measurements import Percentiles, RunResult


class Variant(Struct, frozen=True):
    """One configuration and its runs, one for each seed."""

    name: str
    runs: list[RunResult]


class SimulationReport(Struct, frozen=True):
    """Result of a simulation. Two sides had the same seeds."""

    scenario: str
    sides: list[Variant]


class MetricRow(Struct, frozen=True):
    """One measure over all runs of a side: the mean, and the range."""

    measure: str
    side: str
    mean: str
    range: str


def summary(report: SimulationReport) -> list[MetricRow]:
    """Rows by measure, then by side, so that the sides of a measure stand below each other."""
    lines: list[MetricRow] = []
    for name, value, form in _MEASURES:
        measured = [(side.name, [value(run) for run in side.runs]) for side in report.sides]
        # A measure that is zero on all sides is left out.
        if any(any(found) for _, found in measured):
            lines += [
                MetricRow(name, side, form(fmean(found)), f"{form(min(found))} to {form(max(found))}")
                for side, found in measured
            ]
    return lines


def to_json(report: SimulationReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=1)


def broken(report: SimulationReport) -> list[tuple[str, RunResult]]:
    return [(side.name, run) for side in report.sides for run in side.runs if run.broken]


def span(value: float) -> str:
    """Seconds in the unit that a person would choose."""
    for unit, size in (("h", 3_600.0), ("m", 60.0)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"


def _percent(value: float) -> str:
    return f"{value:.3%}"


def _plain(value: float) -> str:
    return f"{value:,.0f}"


def _repair(pick: Callable[[Percentiles], float]) -> Callable[[RunResult], float]:
    return lambda run: max((pick(one) for one in run.repairs.values()), default=0.0)


_MEASURES: Sequence[tuple[str, Callable[[RunResult], float], Callable[[float], str]]] = (
    ("availability", lambda run: run.availability, _percent),
    ("goodput", lambda run: run.goodput, _percent),
    ("fault to detection, median", lambda run: run.detection.median, span),
    ("fault to detection, 95%", lambda run: run.detection.p95, span),
    ("fault to cordon, median", lambda run: run.cordon.median, span),
    ("fault to cordon, 95%", lambda run: run.cordon.p95, span),
    ("fault to repaired, slowest remedy, median", _repair(lambda one: one.median), span),
    ("repairs", lambda run: sum(one.count for one in run.repairs.values()), _plain),
    ("machines bought", lambda run: run.purchases, _plain),
    ("machine hours", lambda run: run.machine_hours, _plain),
    ("dollars", lambda run: run.dollars, _plain),
    ("minutes of waiting", lambda run: sum(run.holds.values()), _plain),
    ("lives of the control plane", lambda run: run.lives, _plain),
)
