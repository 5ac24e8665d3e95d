"""Autoscalers as the file describes them: each kind with its own keys, older and newer names side by side."""

from collections.abc import Iterable
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from neorion.keel.config import Model, Problem
from neorion.navarch.model import spec

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

Percent = Annotated[float, Field(ge=0, le=100)]


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f'"{name[:40]}" is no time zone; write one like Europe/Berlin or UTC') from None
    return name


def _minute(text: str) -> str:
    hours, _, minutes = text.partition(":")
    if not (
        hours.isdecimal()
        and minutes.isdecimal()
        and len(minutes) == 2
        and int(minutes) < 60
        and int(hours) <= 24
    ):
        raise ValueError(f'"{text[:20]}" is no time of day; write one like 09:30')
    if int(hours) * 60 + int(minutes) > 24 * 60:
        raise ValueError("a day ends at 24:00")
    return text


Zone = Annotated[str, AfterValidator(_zone)]
TimeOfDay = Annotated[str, AfterValidator(_minute)]
Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class WindowModel(Model):
    """Times of the week."""

    days: tuple[Day, ...] = Field(default=_DAYS, min_length=1, description="On which days it begins.")
    start: TimeOfDay | int = Field(description="When it begins: 22:00, or an hour.")
    end: TimeOfDay | int = Field(description="When it ends; before the start means on the next day.")
    timezone: Zone = Field(default="UTC", description="Whose clock is meant, as in Europe/Berlin.")

    def problems(self) -> Iterable[Problem]:
        for key in ("start", "end"):
            value = getattr(self, key)
            if isinstance(value, int) and not 0 <= value <= 24:
                yield Problem((key,), f'"{key}" is an hour between 0 and 24.', "Write 22:30 for half hours.")

    def value(self) -> spec.Window:
        days = frozenset(_DAYS.index(day) for day in self.days)
        return spec.Window(days, _minutes(self.start), _minutes(self.end), ZoneInfo(self.timezone))


def _minutes(value: str | int) -> int:
    if isinstance(value, int):
        return value * 60
    hours, _, minutes = value.partition(":")
    return int(hours) * 60 + int(minutes)


class ScheduleSpanModel(WindowModel):
    """Other limits for some times of the week."""

    min_nodes: int = Field(ge=0, description="At least so many nodes then.")
    max_nodes: int = Field(ge=0, description="At most so many nodes then.")

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.min_nodes > self.max_nodes:
            yield Problem(("min_nodes",), '"min_nodes" is more than "max_nodes".')


class Reactive(Model):
    """By utilisation."""

    type: Literal["reactive"]
    scale_up_threshold: Percent | None = Field(default=None, description="Grow above this percentage.")
    scale_up_at: Percent | None = Field(default=None, description="The newer name of scale_up_threshold.")
    scale_down_threshold: Percent | None = Field(default=None, description="Shrink below this percentage.")
    scale_down_at: Percent | None = Field(default=None, description="The newer name of scale_down_threshold.")

    def problems(self) -> Iterable[Problem]:
        yield from one_name(self, "scale_up_threshold", "scale_up_at")
        yield from one_name(self, "scale_down_threshold", "scale_down_at")
        if self.down >= self.up:
            yield Problem(
                (), f"It shrinks below {self.down:g}% and grows above {self.up:g}%: nothing lies between."
            )

    @property
    def up(self) -> float:
        return first_of(self.scale_up_at, self.scale_up_threshold, 80.0)

    @property
    def down(self) -> float:
        return first_of(self.scale_down_at, self.scale_down_threshold, 20.0)

    def value(self) -> spec.Autoscaler:
        return spec.ReactiveAutoscaler(self.up, self.down)


class Queue(Model):
    """By jobs that wait and run."""

    type: Literal["queue"]
    jobs_per_node: int = Field(default=10, ge=1, description="How many jobs one node takes.")

    def value(self) -> spec.Autoscaler:
        return spec.QueueAutoscaler(self.jobs_per_node)


class Scheduled(Model):
    """By the clock."""

    type: Literal["scheduled"]
    schedule: tuple[ScheduleSpanModel, ...] = Field(
        min_length=1, description="Windows; the first that is open counts."
    )
    fallback: "AnyAutoscaler | None" = Field(default=None, description="What decides within the limits.")

    def value(self) -> spec.Autoscaler:
        spans = tuple(spec.ScheduleSpan(one.value(), one.min_nodes, one.max_nodes) for one in self.schedule)
        return spec.ScheduledAutoscaler(spans, self.fallback.value() if self.fallback else None)


class Predictive(Model):
    """By the trend of utilisation."""

    type: Literal["predictive"]
    lookback_window: int = Field(default=10, ge=2, le=1_000, description="Over how many samples.")
    growth_factor: float = Field(default=1.2, gt=0, le=10, description="How far the trend is followed.")
    threshold: Percent = Field(default=80.0, description="Grow when utilisation goes above this percentage.")
    goal: Annotated[float, Field(gt=0, le=100)] = Field(default=70.0, description="Towards this percentage.")
    fallback: "AnyAutoscaler | None" = Field(default=None, description="What decides otherwise.")

    def value(self) -> spec.Autoscaler:
        fallback = self.fallback.value() if self.fallback else None
        return spec.PredictiveAutoscaler(
            self.lookback_window, self.growth_factor, self.threshold, self.goal, fallback
        )


class Composite(Model):
    """Several at once."""

    type: Literal["composite"]
    mode: Literal["max", "min", "avg"] = Field(default="max", description="Which of their answers counts.")
    autoscalers: tuple["AnyAutoscaler", ...] = Field(min_length=1, description="The parts.")

    def value(self) -> spec.Autoscaler:
        return spec.CompositeAutoscaler(
            spec.CompositeMode(self.mode), tuple(part.value() for part in self.autoscalers)
        )


AnyAutoscaler = Annotated[Reactive | Queue | Scheduled | Predictive | Composite, Field(discriminator="type")]
for _model in (Scheduled, Predictive, Composite):
    _model.model_rebuild()


def first_of(newer: float | None, older: float | None, default: float) -> float:
    return newer if newer is not None else older if older is not None else default


def one_name(model: Model, older: str, newer: str) -> Iterable[Problem]:
    """Reports a problem if a setting is given under both its older and its newer name."""
    if getattr(model, older) is not None and getattr(model, newer) is not None:
        yield Problem(
            (newer,), f'"{newer}" and "{older}" are one thing under two names.', "Remove one of them."
        )
