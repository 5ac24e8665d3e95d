"""Judgements about an exporter's metrics: strict reading, exact names, one series for each device."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from neorion.conformance.model import Assertion
from neorion.conformance.model.profile import MetricNames

# Of one exposition; the largest exporters have some ten thousand series.
_SERIES_MAX: Final = 200_000


class Series(Struct, frozen=True):
    """One sample."""

    name: str
    labels: dict[str, str]
    value: float


class Exposition(Struct, frozen=True):
    """The metrics of an endpoint. `problem` says why it cannot be read; then there are no series."""

    series: tuple[Series, ...] = ()
    problem: str = ""


def read_exposition(text: str) -> Exposition:
    """Read by the parser of Prometheus' own client: what it does not take is not an exposition."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 -- comes with an extra

    try:
        found = [
            Series(sample.name, dict(sample.labels), float(sample.value))
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]
    except (ValueError, KeyError, IndexError) as error:
        return Exposition(problem=f"{type(error).__name__}: {str(error)[:200]}")
    if len(found) > _SERIES_MAX:
        return Exposition(problem=f"It has more than {_SERIES_MAX} series.")
    return Exposition(tuple(found))


def readable(exposition: Exposition) -> Assertion:
    return Assertion(
        "the endpoint serves a readable exposition",
        not exposition.problem,
        exposition.problem or f"It has {len(exposition.series)} series.",
    )


def covers(kind: str, exposition: Exposition, metric: str, device: str, count: int) -> Assertion:
    """One series of exactly this name for each of so many devices, each with an id of its own."""
    ids = [series.labels.get(device, "") for series in exposition.series if series.name == metric]
    known = {each for each in ids if each}
    held = len(ids) == len(known) == count
    return Assertion(
        f"each device has one series of {kind}",
        held,
        f"{metric} has {len(ids)} series of {len(known)} devices; there are {count} devices.",
    )


def same_ids(exposition: Exposition, names: MetricNames, known: Collection[str]) -> Assertion:
    """The exporter's ids are those by which devices are allocated."""
    ids = {
        series.labels.get(names.device, "")
        for series in exposition.series
        if series.name == names.utilization
    }
    strange = sorted(ids ^ set(known))
    return Assertion(
        "ids are those of the allocation", not strange, f"Not on both sides: {', '.join(strange) or 'none'}."
    )


def without_one(exposition: Exposition, names: MetricNames) -> Exposition:
    """A copy that lacks every series of one device: of one whose utilization is served, others prove nothing."""
    device = names.device
    measured = (series for series in exposition.series if series.name == names.utilization)
    gone = min((each.labels.get(device, "") for each in measured), default="")
    return Exposition(tuple(each for each in exposition.series if each.labels.get(device) != gone))


def renamed(exposition: Exposition, names: Mapping[str, str]) -> Exposition:
    """A copy whose metrics have names that only look alike."""
    return Exposition(tuple(_renamed(exposition, names)))


def optional_found(exposition: Exposition, names: MetricNames) -> list[str]:
    served = {series.name for series in exposition.series}
    return [name for name in names.optional if name in served]


def _renamed(exposition: Exposition, names: Mapping[str, str]) -> Iterator[Series]:
    for each in exposition.series:
        yield Series(names.get(each.name, each.name), each.labels, each.value)
