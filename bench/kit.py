"""How a figure is made: ours and the reference alternate, and the ratio of each round counts, not the absolute time."""

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

ROUNDS = 5

Measure = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a report."""

    name: str
    unit: str
    ours: list[float]
    reference_name: str
    reference: list[float]

    @property
    def ratios(self) -> list[float]:
        return [ours / other for ours, other in zip(self.ours, self.reference, strict=True)]

    def __str__(self) -> str:
        text = f"{self.name}: {statistics.median(self.ours):,.4g} {self.unit}"
        if self.reference:
            low, high = min(self.ratios), max(self.ratios)
            text += (
                f"; {self.reference_name}: {statistics.median(self.reference):,.4g} {self.unit};"
                f" ratio {statistics.median(self.ratios):.2f} ({low:.2f}-{high:.2f}, {len(self.ratios)} rounds)"
            )
        return text


@dataclass(slots=True)
class Report:
    """Collects figures and prints each as soon as it is known."""

    figures: list[Figure] = field(default_factory=list[Figure])

    def compare(
        self, name: str, unit: str, ours: Measure, reference: tuple[str, Measure], rounds: int = ROUNDS
    ) -> Figure:
        """Alternates ours and the reference; each call returns one value in `unit`."""
        reference_name, measure_reference = reference
        values: list[float] = []
        others: list[float] = []
        for _ in range(rounds):
            values.append(ours())
            others.append(measure_reference())
        return self._add(Figure(name, unit, values, reference_name, others))

    def alone(self, name: str, unit: str, ours: Measure, rounds: int = ROUNDS) -> Figure:
        """A figure without a peer: context only."""
        return self._add(Figure(name, unit, [ours() for _ in range(rounds)], "", []))

    def _add(self, figure: Figure) -> Figure:
        self.figures.append(figure)
        print(f"{figure}  [load {os.getloadavg()[0]:.1f}]", flush=True)
        return figure
