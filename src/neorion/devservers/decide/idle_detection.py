"""Idle detection. Only a recent and complete probe proves that a server is idle; unknown is never idle."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# An older probe does not prove that the server is idle now.
FRESH = timedelta(minutes=1)
# Of one CPU, on average since the last look. An editor's server that waits for its user takes about a fiftieth.
CPU_FLOOR = 0.05
# Of a GPU. Drivers report a percent or two for a display that shows nothing.
GPU_FLOOR = 5
# Older activity in a probe's output is ignored.
_AGE_MAX = timedelta(days=366)


class ActivitySource(StrEnum):
    """Source of activity."""

    SESSION = "an open session"
    TERMINAL = "typing in a terminal"
    CPU = "CPU use"
    GPU = "GPU use"
    PROCESS = "a running job"
    NOTEBOOK = "a busy notebook"


@dataclass(frozen=True, slots=True)
class ActivitySignal:
    """When one source was last seen active."""

    source: ActivitySource
    active: datetime


@dataclass(frozen=True, slots=True)
class ActivitySnapshot:
    """One look into the server: when it was taken, the latest sign of each source, and the sources it could not read."""

    taken: datetime
    signs: tuple[ActivitySignal, ...] = ()
    unknown: tuple[ActivitySource, ...] = ()

    def proves_idle(self, now: datetime) -> bool:
        """Reports whether the probe is recent and complete, so that it can prove that the server is idle."""
        return not self.unknown and now - self.taken <= FRESH

    @property
    def latest(self) -> ActivitySignal | None:
        return max(self.signs, key=lambda sign: sign.active, default=None)


@dataclass(frozen=True, slots=True)
class ProbeReading:
    """Result of one probe. `ages` are the times since a source was active; `cpu` is the usage since the container's start."""

    ages: tuple[tuple[ActivitySource, timedelta], ...] = ()
    cpu: timedelta | None = None
    unknown: frozenset[ActivitySource] = frozenset()


def together(readings: Sequence[ProbeReading]) -> ProbeReading:
    """Merge the readings of all ranks: the latest use on any of them, and the CPU that all have used."""
    if len(readings) == 1:
        return readings[0]
    ages: dict[ActivitySource, timedelta] = {}
    for source, age in (one for reading in readings for one in reading.ages):
        ages[source] = min(age, ages.get(source, age))
    used = [reading.cpu for reading in readings if reading.cpu is not None]
    cpu = sum(used, timedelta(0)) if len(used) == len(readings) else None
    unknown = frozenset[ActivitySource]().union(*(reading.unknown for reading in readings))
    return ProbeReading(tuple(ages.items()), cpu, unknown)


@dataclass(frozen=True, slots=True)
class ActivityHistory:
    """All that was seen of one server's use in its pods, whose names `pod` lists. There is no look before there are two readings: CPU is used between them."""

    pod: str
    taken: datetime
    cpu: timedelta | None = None
    look: ActivitySnapshot | None = None
    misses: int = 0


def next_history(
    before: ActivityHistory | None, pod: str, reading: ProbeReading, taken: datetime
) -> ActivityHistory:
    """The next sight of a pod after another reading."""
    known = before if before is not None and before.pod == pod else None
    unknown = reading.unknown if reading.cpu is not None else reading.unknown | {ActivitySource.CPU}
    active = [
        ActivitySignal(source, taken - min(max(age, timedelta(0)), _AGE_MAX)) for source, age in reading.ages
    ]
    share = _cpu_share(known, reading, taken)
    if share is not None and share >= CPU_FLOOR:
        active.append(ActivitySignal(ActivitySource.CPU, taken))
    signs = _latest([*(known.look.signs if known and known.look else ()), *active])
    # What cannot be read at all is told at once; what has to be compared is not, before it can be.
    told = share is not None or reading.cpu is None
    look = ActivitySnapshot(taken, signs, tuple(sorted(unknown))) if told else None
    return ActivityHistory(pod, taken, reading.cpu, look)


def failed_probe(before: ActivityHistory | None, pod: str, taken: datetime) -> ActivityHistory:
    """The next sight of a pod that could not be looked into."""
    known = before if before is not None and before.pod == pod else None
    signs = known.look.signs if known and known.look else ()
    look = ActivitySnapshot(taken, signs, tuple(sorted(ActivitySource)))
    return ActivityHistory(pod, taken, known.cpu if known else None, look, known.misses + 1 if known else 1)


def _cpu_share(before: ActivityHistory | None, reading: ProbeReading, taken: datetime) -> float | None:
    """CPUs in use since the last reading; None where the two cannot be compared, as after a restart or a set clock."""
    if before is None or before.cpu is None or reading.cpu is None:
        return None
    if reading.cpu < before.cpu or taken <= before.taken:
        return None
    return (reading.cpu - before.cpu) / (taken - before.taken)


def _latest(signs: Iterable[ActivitySignal]) -> tuple[ActivitySignal, ...]:
    found: dict[ActivitySource, ActivitySignal] = {}
    for sign in sorted(signs, key=lambda one: one.active):
        found[sign.source] = sign
    return tuple(found[source] for source in ActivitySource if source in found)
