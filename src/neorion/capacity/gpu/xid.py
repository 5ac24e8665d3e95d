"""The XID codes of NVIDIA's driver: the class of the fault, and the vendor's first advice."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any, Final

from neorion.capacity.gpu.remedy import Remedy


class XidClass(StrEnum):
    """The component at fault. SECONDARY follows another code and has no meaning by itself."""

    APPLICATION = "application"
    DRIVER = "driver"
    HARDWARE = "hardware"
    MEMORY = "memory"
    FABRIC = "fabric"
    POWER = "power"
    SECONDARY = "secondary"
    INFORMATION = "information"
    UNKNOWN = "unknown"

    @property
    def blames_the_machine(self) -> bool:
        return self in (XidClass.HARDWARE, XidClass.MEMORY, XidClass.FABRIC, XidClass.POWER)


@dataclass(frozen=True, slots=True)
class Xid:
    """One code. `remedy` is the first action; `certain` means that one occurrence is enough; `then` is the next action."""

    code: int
    name: str
    kind: XidClass
    remedy: Remedy
    certain: bool = False
    then: str = ""


def xid(code: int) -> Xid:
    """Returns the entry of the catalogue. An unknown code leads to no action."""
    return CATALOGUE.get(code) or Xid(code, "not in the catalogue", XidClass.UNKNOWN, Remedy.NOTHING)


def _row(code: int, row: Mapping[str, Any]) -> Xid:
    return Xid(
        code,
        row["name"],
        XidClass(row["class"]),
        Remedy(row["action"]),
        row.get("certain", False),
        row.get("then", ""),
    )


def _read() -> dict[int, Xid]:
    text = resources.files(__package__ or __name__).joinpath("xid.toml").read_text("utf-8")
    return {int(code): _row(int(code), row) for code, row in tomllib.loads(text)["xid"].items()}


CATALOGUE: Final[Mapping[int, Xid]] = _read()
