"""One look at one GPU, and what it means. Pure: the same readings always show the same signs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from neorion.navarch.model import EventKind
from neorion.navarch.ports import Gpu

# Degrees below the temperature at which the GPU slows itself down; the policy's rule for "hot" begins here.
WARM: Final = 10.0
# An idle GPU lets its PCIe link run slowly to save power; only a busy one shows what the link can do.
BUSY_PERCENT: Final = 50.0
# Fewer siblings with more links prove nothing: cards in pairs may be wired differently.
SIBLINGS_MIN: Final = 3

_HW_SLOWDOWN: Final = 0x08
_HW_THERMAL: Final = 0x40
_HW_POWER_BRAKE: Final = 0x80


@dataclass(frozen=True, slots=True)
class GpuReading:
    """A GPU as its driver describes it. None is what it does not tell."""

    gpu: Gpu
    bus: str = ""
    slowdown_at: float | None = None
    slowed_by: int = 0
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    rows_pending: bool = False
    rows_failure: bool = False
    width: int | None = None
    width_most: int | None = None
    generation: int | None = None
    generation_most: int | None = None
    links: int = 0
    recovery: int | None = None


@dataclass(frozen=True, slots=True)
class HealthSignal:
    """Something that an agent should tell. Signs of one key are one thing that goes on."""

    kind: EventKind
    gpu: int = -1
    uuid: str = ""
    grade: str = ""
    message: str = ""
    metrics: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def key(self) -> tuple[EventKind, int, str]:
        return self.kind, self.gpu, self.grade


def counter_signals(before: GpuReading, now: GpuReading) -> Iterator[HealthSignal]:
    """Signals of counters that rose between two readings. A counter that fell was reset, and counts from zero."""
    for kind, old, new in (
        (EventKind.ECC_DOUBLE_BIT, before.ecc_uncorrected, now.ecc_uncorrected),
        (EventKind.ECC_SINGLE_BIT, before.ecc_corrected, now.ecc_corrected),
    ):
        if old is None or new is None:
            continue
        more = new - old if new >= old else new
        if more:
            yield _sign(kind, now, f"{more} more memory errors", count=float(more))


def state_signals(now: GpuReading, links: int) -> Iterator[HealthSignal]:
    """Signals that last as long as a GPU's state. `links` is its expected number of NVLinks."""
    if now.rows_failure:
        yield _sign(EventKind.ROW_REMAP, now, "no spare row is left", "failure", failure=1.0)
    elif now.rows_pending:
        yield _sign(EventKind.ROW_REMAP, now, "a row is remapped at the next reset", "pending", pending=1.0)
    if now.recovery:
        # Until it is treated, whatever else it says may be a consequence.
        yield _sign(
            EventKind.RECOVERY_ACTION,
            now,
            f"the GPU asks for recovery action {now.recovery}",
            str(now.recovery),
            action=float(now.recovery),
        )
        return
    yield from _hot(now)
    if now.slowed_by & _HW_POWER_BRAKE:
        yield _sign(EventKind.POWER, now, "slowed down by its power supply", slowed_by=float(now.slowed_by))
    if now.links < links:
        down = links - now.links
        yield _sign(EventKind.NVLINK, now, f"{down} of {links} NVLinks are down", str(down), down=float(down))
    yield from _narrow(now)


def expected_links(now: Sequence[GpuReading], best: dict[str, int]) -> dict[int, int]:
    """Expected NVLinks of each GPU: as many as it had before, or as all others of a large group have."""
    due: dict[int, int] = {}
    for one in now:
        others = [other.links for other in now if other is not one]
        alike = min(others) if len(others) >= SIBLINGS_MIN else 0
        due[one.gpu.index] = max(best.get(one.gpu.uuid, 0), alike)
    return due


def _hot(now: GpuReading) -> Iterator[HealthSignal]:
    margin = None if now.slowdown_at is None else now.slowdown_at - now.gpu.temperature
    slowed = bool(now.slowed_by & _HW_THERMAL) or (
        # The older flag says "slowed down", not by what: without a power brake it is heat.
        bool(now.slowed_by & _HW_SLOWDOWN) and not now.slowed_by & _HW_POWER_BRAKE
    )
    if slowed or (margin is not None and margin <= 0):
        told = min(margin, 0.0) if margin is not None else 0.0
        yield _sign(EventKind.THERMAL, now, "slowed down by heat", "slowed", margin=told)
    elif margin is not None and margin <= WARM:
        yield _sign(EventKind.THERMAL, now, "close to slowing down", "warm", margin=margin)


def _narrow(now: GpuReading) -> Iterator[HealthSignal]:
    if now.width and now.width_most and now.width < now.width_most:
        yield _sign(
            EventKind.PCIE,
            now,
            f"PCIe x{now.width} instead of x{now.width_most}",
            "width",
            width=float(now.width),
            expected=float(now.width_most),
        )
    slow = now.generation and now.generation_most and now.generation < now.generation_most
    if slow and now.gpu.utilisation >= BUSY_PERCENT:
        yield _sign(
            EventKind.PCIE,
            now,
            f"PCIe generation {now.generation} instead of {now.generation_most} under load",
            "generation",
            generation=float(now.generation or 0),
            expected=float(now.generation_most or 0),
        )


def _sign(kind: EventKind, now: GpuReading, message: str, grade: str = "", **metrics: float) -> HealthSignal:
    return HealthSignal(kind, now.gpu.index, now.gpu.uuid, grade, message, metrics)
