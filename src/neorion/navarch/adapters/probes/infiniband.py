"""The fabric's ports, as the kernel counts them under /sys/class/infiniband."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from neorion.navarch.adapters.probes.gpu_reading import HealthSignal
from neorion.navarch.model import EventKind

# One more of any of these is a fault of the link or its cable.
FATAL: Final = (
    "link_downed",
    "excessive_buffer_overrun_errors",
    "local_link_integrity_errors",
    "rnr_nak_retry_err",
)
# In an hour, at the bit error rate of 10^-12 that the standard allows. A shorter time would judge single bursts.
SYMBOLS_MAX: Final = 120
HOUR_S: Final = 3_600.0
# Worth watching, each with the rate per second above which it is.
WATCHED: Final = {
    "link_error_recovery": 5 / 60,
    "port_rcv_errors": 10.0,
    "port_xmit_discards": 100.0,
    "roce_slow_restart": 10.0,
    "local_ack_timeout_err": 1.0,
}
# A port that comes back sooner is the link's own business: retraining takes a minute or two.
DOWN_S: Final = 240.0


@dataclass(frozen=True, slots=True)
class Port:
    """One port at one moment."""

    active: bool
    counters: dict[str, int]


def read(root: Path) -> dict[str, Port]:
    """Every port by name, "mlx5_0/1". Nothing on a machine without such a fabric."""
    return {
        f"{folder.parent.parent.name}/{folder.name}": Port(_active(folder), _counters(folder))
        for folder in sorted(root.glob("*/ports/*"))
    }


@dataclass(slots=True)
class InfinibandCounters:
    """State of the ports at the last reading, and the time since which a port has been down."""

    ports: dict[str, Port] = field(default_factory=dict[str, Port])
    seen_at: float = 0.0
    down_since: dict[str, float] = field(default_factory=dict[str, float])
    # Where the running hour of each port began: when, and at which count.
    hours: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])

    def update(self, now: dict[str, Port], at: float) -> tuple[list[HealthSignal], list[HealthSignal]]:
        """Returns signals of counters since the last reading, and signals that last as long as their state."""
        counted: list[HealthSignal] = []
        for name, port in now.items():
            if name in self.ports:
                counted += _counted(name, self.ports[name], port, at - self.seen_at)
            counted += self._noise(name, port.counters.get("symbol_error", 0), at)
        # A port that was never up may not be wired at all. One that was, and is gone, is down.
        up = {name for name, port in now.items() if port.active}
        known = {name for name, port in self.ports.items() if port.active} | set(self.down_since)
        self.down_since = {name: self.down_since.get(name, at) for name in sorted(known - up)}
        self.ports, self.seen_at = now, at
        down = [
            HealthSignal(
                EventKind.INFINIBAND, grade=name, message=f"port {name} is down", metrics={"fatal": 1.0}
            )
            for name, since in self.down_since.items()
            if at - since >= DOWN_S
        ]
        return counted, down

    def _noise(self, name: str, symbols: int, at: float) -> Iterator[HealthSignal]:
        began, base = self.hours.get(name, (at, symbols))
        more = symbols - base
        if more > SYMBOLS_MAX:
            metrics = {"fatal": 1.0, "symbol_error": float(more)}
            yield HealthSignal(
                EventKind.INFINIBAND, message=f"port {name}: {more} symbol errors in an hour", metrics=metrics
            )
        over = more > SYMBOLS_MAX or more < 0 or at - began >= HOUR_S
        self.hours[name] = (at, symbols) if over else (began, base)


def _counted(name: str, before: Port, now: Port, seconds: float) -> Iterator[HealthSignal]:
    more = {key: value - before.counters.get(key, value) for key, value in now.counters.items()}
    fatal = [key for key in FATAL if more.get(key, 0) > 0]
    watched = [key for key, rate in WATCHED.items() if more.get(key, 0) > rate * max(seconds, 1.0)]
    if fatal or watched:
        yield HealthSignal(
            EventKind.INFINIBAND,
            message=f"port {name}: " + ", ".join(f"{more[key]} more {key}" for key in [*fatal, *watched]),
            metrics={"fatal": float(bool(fatal)), **{key: float(more[key]) for key in [*fatal, *watched]}},
        )


def _active(port: Path) -> bool:
    try:
        return (port / "state").read_text().startswith("4:")
    except OSError:
        return False


def _counters(port: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for key in (*FATAL, "symbol_error", *WATCHED):
        for folder in ("counters", "hw_counters"):
            try:
                found[key] = int((port / folder / key).read_text())
            except (OSError, ValueError):
                # Not every adapter counts everything.
                continue
    return found
