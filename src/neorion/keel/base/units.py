"""Durations, instants and quantities as exact integers, and the forms people write them in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import total_ordering
from typing import Self

_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3_600 * 1_000_000_000,
    "d": 86_400 * 1_000_000_000,
    "w": 7 * 86_400 * 1_000_000_000,
}
_NS_FIELDS = {
    "nanoseconds": 1,
    "microseconds": _NS["us"],
    "milliseconds": _NS["ms"],
    "seconds": _NS["s"],
    "minutes": _NS["m"],
    "hours": _NS["h"],
    "days": _NS["d"],
}
# About 292 years: what a signed 64-bit count of nanoseconds holds, so that any store and any wire form can keep it.
_NS_MAX = 2**63 - 1
_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"
_TERM = re.compile(rf"({_NUMBER})(ns|us|ms|s|m|h|d|w)")
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ns|us|ms|s|m|h|d|w))+")
_PLAIN = re.compile(_NUMBER)


class UnitError(ValueError):
    """A text is not a valid duration or quantity. The caller that has the text's origin turns this into `Invalid`."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time that is never negative."""

    ns: int

    def __post_init__(self) -> None:
        if not 0 <= self.ns <= _NS_MAX:
            raise UnitError("a duration lies between 0 and 292 years")

    @classmethod
    def of(cls, *, seconds: float = 0, ms: float = 0, minutes: float = 0, hours: float = 0) -> Self:
        return cls(round(seconds * _NS["s"] + ms * _NS["ms"] + minutes * _NS["m"] + hours * _NS["h"]))

    @classmethod
    def parse(cls, value: object) -> Self:
        """Every form the files use: "2h30m", "1d", "1.5s", seconds as a number, {"milliseconds": 1800000}."""
        match value:
            case Duration():
                return cls(value.ns)
            case str():
                return cls(_parse_text(value))
            case Mapping():
                return cls(_parse_fields(value))  # pyright: ignore[reportUnknownArgumentType] -- checked inside
            case int() | float() if not isinstance(value, bool):
                return cls(_exact(str(value), _NS["s"]))
            case _:
                raise UnitError(
                    f'{value!r} is not a valid duration; write "30m", "2h30m" or seconds as a number'
                )

    @property
    def seconds(self) -> float:
        return self.ns / _NS["s"]

    @property
    def ms(self) -> float:
        return self.ns / _NS["ms"]

    def __str__(self) -> str:
        """The canonical form, "2h30m"; it parses back to the same duration."""
        if self.ns == 0:
            return "0s"
        rest, parts = self.ns, list[str]()
        for unit in ("d", "h", "m", "s", "ms", "us", "ns"):
            count, rest = divmod(rest, _NS[unit])
            if count:
                parts.append(f"{count}{unit}")
        return "".join(parts)

    def __bool__(self) -> bool:
        return self.ns != 0

    def __lt__(self, other: Self) -> bool:
        return self.ns < other.ns

    def __add__(self, other: Self) -> Self:
        return type(self)(self.ns + other.ns)

    def __sub__(self, other: Self) -> Self:
        """Never below zero: what is left of a time span that is over is nothing."""
        return type(self)(max(0, self.ns - other.ns))

    def __mul__(self, factor: float) -> Self:
        return type(self)(round(self.ns * factor))

    def __truediv__(self, other: Self) -> float:
        return self.ns / other.ns


@total_ordering
@dataclass(frozen=True, slots=True)
class Instant:
    """A point in time, as nanoseconds since 1970 in UTC. For records and people; timeouts use a monotonic clock."""

    ns: int

    def __lt__(self, other: Self) -> bool:
        return self.ns < other.ns

    def __add__(self, span: Duration) -> Self:
        return type(self)(self.ns + span.ns)

    def __sub__(self, span: Duration) -> Self:
        return type(self)(self.ns - span.ns)

    def since(self, earlier: Self) -> Duration:
        """The time from `earlier` to this instant; zero when this one is not later."""
        return Duration(max(0, self.ns - earlier.ns))

    def __str__(self) -> str:
        """RFC 3339 in UTC, milliseconds."""
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.ns // _NS["ms"])
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


_NANO = 1_000_000_000
_SUFFIX = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "K": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30),
    "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_QUANTITY = re.compile(
    r"([0-9]{1,30}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE]([+-]?[0-9]{1,2})|([numkKMGTPE]i?)?B?)"
)


@total_ordering
@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount of something, exact to a billionth as in Kubernetes: cores ("500m"), bytes ("512Mi", "2048GB")."""

    nano: int

    def __post_init__(self) -> None:
        if not 0 <= self.nano <= (2**63 - 1) * _NANO:
            raise UnitError("a quantity lies between 0 and 2^63-1")

    @classmethod
    def parse(cls, value: object) -> Self:
        """Kubernetes' forms, and sizes with a B: "2048GB" is 2048 × 10⁹ bytes, "64GiB" 64 × 2³⁰."""
        if isinstance(value, Quantity):
            return cls(value.nano)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UnitError(f'{value!r} is not a valid quantity; write "4", "500m", "512Mi" or "2048GB"')
        found = _QUANTITY.fullmatch(str(value).strip())
        if found is None or (found[3] or "") not in _SUFFIX:
            raise UnitError(
                f'"{str(value)[:40]}" is not a valid quantity; write "4", "500m", "512Mi" or "2048GB"'
            )
        number, exponent, suffix = found.groups()
        exact = Decimal(number).scaleb(int(exponent or 0)) * _SUFFIX[suffix or ""] * _NANO
        return cls(int(exact.to_integral_value(rounding="ROUND_CEILING")))

    @classmethod
    def of(cls, whole: int) -> Self:
        return cls(whole * _NANO)

    @property
    def whole(self) -> int:
        """Rounded up, as Kubernetes does: half a byte needs a byte."""
        return -(-self.nano // _NANO)

    @property
    def milli(self) -> int:
        return -(-self.nano // 1_000_000)

    def __str__(self) -> str:
        """The shortest exact form; it parses back to the same quantity."""
        whole, rest = divmod(self.nano, _NANO)
        if rest:
            for suffix, unit in (("m", 1_000_000), ("u", 1_000), ("n", 1)):
                if self.nano % unit == 0:
                    return f"{self.nano // unit}{suffix}"
        forms = [str(whole)]
        for suffix in ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"):
            unit = int(_SUFFIX[suffix])
            if whole and whole % unit == 0:
                forms.append(f"{whole // unit}{suffix}")
        return min(forms, key=len)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __lt__(self, other: Self) -> bool:
        return self.nano < other.nano

    def __add__(self, other: Self) -> Self:
        return type(self)(self.nano + other.nano)

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.nano - other.nano)

    def __mul__(self, count: int) -> Self:
        return type(self)(self.nano * count)


def _parse_text(text: str) -> int:
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return _exact(text, _NS["s"])
    if not _DURATION.fullmatch(text):
        raise UnitError(
            f'"{text[:40]}" is not a valid duration; write "30m", "2h30m", "1d" or seconds as a number'
        )
    terms = _TERM.findall(text)
    sizes = [_NS[unit] for _, unit in terms]
    if sizes != sorted(set(sizes), reverse=True):
        raise UnitError(
            f'"{text[:40]}" is not a valid duration; each unit may occur once, the largest first, as in "2h30m"'
        )
    return sum(_exact(number, _NS[unit]) for number, unit in terms)


def _parse_fields(fields: Mapping[object, object]) -> int:
    if not fields:
        raise UnitError("an empty mapping is not a valid duration; write { milliseconds: 1800000 }")
    total = 0
    for name, count in fields.items():
        unit = _NS_FIELDS.get(str(name))
        if unit is None:
            raise UnitError(f'"{name}" is not a unit of time; use one of {", ".join(_NS_FIELDS)}')
        if isinstance(count, bool) or not isinstance(count, int | float):
            raise UnitError(f"{name} takes a number, not {count!r}")
        total += _exact(str(count), unit)
    return total


def _exact(number: str, unit: int) -> int:
    """Decimal, so that 0.1s is a hundred milliseconds and not a rounding of it."""
    try:
        value = Decimal(number)
    except InvalidOperation:
        raise UnitError(f"{number} is not a number") from None
    if not value.is_finite() or value < 0 or value > _NS_MAX:
        raise UnitError(f"{number} is not a valid duration; it lies between 0 and 292 years")
    return int((value * unit).to_integral_value())
