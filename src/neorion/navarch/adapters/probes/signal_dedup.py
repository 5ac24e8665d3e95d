"""Deduplication of lasting signals: each is reported when it begins, now and then while it lasts, and when it ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from neorion.keel.base import Duration
from neorion.navarch.adapters.probes.gpu_reading import HealthSignal
from neorion.navarch.model import EventKind

# Longer than the silence that separates two sightings, so that what lasts is counted as seen again; then ever more rarely,
# because what has been said five times is known.
AGAIN: Final = Duration.of(minutes=5)
AGAIN_MOST: Final = Duration.of(hours=6)


@dataclass(slots=True)
class _ActiveSignal:
    sign: HealthSignal
    at: float
    pause: float


class SignalDeduplicator:
    """Turns what each look finds into what is worth telling."""

    def __init__(self) -> None:
        self._told: dict[tuple[EventKind, int, str], _ActiveSignal] = {}

    @property
    def standing(self) -> list[HealthSignal]:
        """Signals that were reported and have not ended."""
        return [told.sign for told in self._told.values()]

    def update(self, signs: Iterable[HealthSignal], at: float) -> list[HealthSignal]:
        """`at` is monotonic. A kind is told to have ended when no GPU shows it any more: nodes are judged by kind."""
        found = {sign.key: sign for sign in signs}
        worth = [sign for sign in found.values() if self._due(sign, at)]
        ended = {key for key in self._told if key not in found}
        for key in ended:
            del self._told[key]
        left = {kind for kind, _, _ in found}
        over = sorted({kind for kind, _, _ in ended} - left)
        worth += [HealthSignal(kind, message="it is over", metrics={"cleared": 1.0}) for kind in over]
        return worth

    def _due(self, sign: HealthSignal, at: float) -> bool:
        told = self._told.get(sign.key)
        if told is None:
            self._told[sign.key] = _ActiveSignal(sign, at, AGAIN.seconds)
            return True
        if at - told.at < told.pause:
            return False
        self._told[sign.key] = _ActiveSignal(sign, at, min(told.pause * 2, AGAIN_MOST.seconds))
        return True
