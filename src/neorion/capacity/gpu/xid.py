"""The XID codes of NVIDIA's driver: who is at fault, and what the vendor advises to do first."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any, Final

from neorion.capacity.gpu.remedy import Remedy


class XidClass(StrEnum):
    """Whose fault it is. SECONDARY follows another code and says nothing by itself."""

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
    """One code. `remedy` is the first thing to do; `certain` says that one sighting is enough; `then` is what follows."""

    code: int
    name: str
    kind: XidClass
    remedy: Remedy
    certain: bool = False
    then: str = ""


def xid(code: int) -> Xid:
    """What the catalogue knows; a code it does not know is watched, never acted upon."""
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
