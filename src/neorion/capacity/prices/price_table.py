"""Published prices, and the prices of one account."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import resources
from typing import Any, Final

SPOT: Final = "/spot"


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices at one cloud.

    `own` are those of the account, by instance type or by "TYPE/spot"; they replace published ones.
    """

    cloud: str
    own: Mapping[str, float] = field(default_factory=dict[str, float])

    def price(self, instance_type: str, region: str, *, spot: bool = False) -> float | None:
        """Dollars per hour, or None if the price is not known. Spot machines have no published price."""
        own = self.own.get(f"{instance_type}{SPOT}" if spot else instance_type)
        if own is not None or spot:
            return own
        listed = _LIST.get(self.cloud)
        if listed is None or (listed["regions"] and region not in listed["regions"]):
            return None
        return listed["price"].get(instance_type)


def listed_on(cloud: str) -> date | None:
    """The day on which the cloud's published prices were read; None if it has none."""
    return _LIST[cloud]["as_of"] if cloud in _LIST else None


def _read() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__ or __name__).joinpath("list.toml").read_text("utf-8"))


_LIST: Final = _read()
