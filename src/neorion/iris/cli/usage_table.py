"""Record and columns of resource usage."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from neorion.iris.cli.humanize import size
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration, Quantity
from neorion.keel.cli.kit import Column

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """Usage of an attempt: measured seconds ago while it runs, total after its end. None means unknown."""

    cpu: Quantity | None
    memory: Quantity | None
    memory_peak: Quantity | None
    cpu_time: Duration | None
    processes: int | None

    @classmethod
    def of(cls, usage: pb.Usage | None) -> "UsageRecord":
        u = usage or pb.Usage()
        running = u.processes > 0
        return cls(
            cpu=Quantity(u.cpu_milli * 1_000_000) if running else None,
            memory=Quantity.of(u.memory_bytes) if running else None,
            memory_peak=Quantity.of(u.memory_peak_bytes) if u.memory_peak_bytes else None,
            cpu_time=Duration.of(ms=u.cpu_ms) if u.cpu_ms else None,
            processes=u.processes if running else None,
        )


def now_columns(usage: Callable[[R], UsageRecord], *, wide: bool = False) -> tuple[Column[R], ...]:
    """Columns of current usage, for running attempts."""
    return (
        Column("CPU", lambda one: _cores(usage(one).cpu), right=True, priority=3, wide=wide),
        Column("MEMORY", lambda one: _size(usage(one).memory), right=True, priority=3, wide=wide),
        Column("PROCESSES", lambda one: usage(one).processes, right=True, wide=True),
    )


def whole_columns(usage: Callable[[R], UsageRecord], *, wide: bool = False) -> tuple[Column[R], ...]:
    """Columns of total usage, for ended attempts."""
    return (
        Column("CPU TIME", lambda one: _time(usage(one).cpu_time), right=True, priority=3, wide=wide),
        Column("MOST MEMORY", lambda one: _size(usage(one).memory_peak), right=True, priority=3, wide=wide),
    )


def _cores(found: Quantity | None) -> str:
    return f"{found.milli / 1000:.3g}" if found is not None else ""


def _size(found: Quantity | None) -> str:
    return size(found.whole) if found is not None else ""


def _time(found: Duration | None) -> str:
    """Formats a duration: up to a minute in hundredths of a second, longer ones in seconds."""
    if found is None:
        return ""
    step = 10_000_000 if found < Duration.of(minutes=1) else 1_000_000_000
    return str(Duration(found.ns // step * step))
