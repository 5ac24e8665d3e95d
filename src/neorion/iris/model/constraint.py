"""Constraints: required or preferred conditions on the attributes of a worker."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from neorion.keel.base import Invalid

Attributes = Mapping[str, str]

_FORM = re.compile(r"([a-z0-9][a-z0-9./_-]{0,127})\s*(!=|<=|>=|=|<|>|\s+in\s+)\s*(.{1,1024})")
_BARE = re.compile(r"(!?)([a-z0-9][a-z0-9./_-]{0,127})")


class Op(StrEnum):
    """Comparison. `<`, `<=`, `>` and `>=` hold only if both sides are numbers."""

    EQ = "="
    NE = "!="
    IN = "in"
    EXISTS = "exists"
    ABSENT = "absent"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Constraint:
    """One condition. A preferred one only orders the workers that qualify."""

    key: str
    op: Op
    values: tuple[str, ...] = ()
    required: bool = True

    def holds(self, attributes: Attributes) -> bool:
        here = attributes.get(self.key)
        match self.op:
            case Op.EXISTS:
                return here is not None
            case Op.ABSENT:
                return here is None
            case Op.NE:
                return here != self.values[0]
            case Op.EQ | Op.IN:
                return here in self.values
            case _:
                return here is not None and self._sized(here)

    def _sized(self, here: str) -> bool:
        try:
            left, right = float(here), float(self.values[0])
        except ValueError:
            return False
        match self.op:
            case Op.LT:
                return left < right
            case Op.LE:
                return left <= right
            case Op.GT:
                return left > right
            case _:
                return left >= right

    @classmethod
    def parse(cls, text: str, *, required: bool = True) -> Self:
        """Parses a text such as "zone=us-east-1a", "gpu-memory>=80", "zone in a,b", "nvlink" or "!spot"."""
        text = text.strip()
        if found := _BARE.fullmatch(text):
            return cls(found[2], Op.ABSENT if found[1] else Op.EXISTS, (), required)
        found = _FORM.fullmatch(text)
        if found is None:
            raise Invalid(
                "iris.constraint",
                f'"{text[:80]}" is not a valid constraint.',
                hint='Write "zone=us-east-1a", "gpu-memory>=80", "zone in a,b", "nvlink" or "!spot".',
            )
        op = Op(found[2].strip())
        values = tuple(part.strip() for part in found[3].split(",")) if op is Op.IN else (found[3].strip(),)
        return cls(found[1], op, values, required)

    def __str__(self) -> str:
        match self.op:
            case Op.EXISTS:
                return self.key
            case Op.ABSENT:
                return f"!{self.key}"
            case Op.IN:
                return f"{self.key} in {','.join(self.values)}"
            case _:
                return f"{self.key}{self.op}{self.values[0]}"
