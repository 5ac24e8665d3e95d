"""Reading a large file with places and references, beside what reads it without either."""

import time
from collections.abc import Callable
from typing import Any

import yaml

from bench.kit import Report
from neorion.keel.config import DurationField, Model, NameField, QuantityField, loads


class Pool(Model):
    name: NameField
    provider: str
    min_nodes: int
    max_nodes: int
    cooldown: DurationField
    ram: QuantityField


class Fleet(Model):
    pools: tuple[Pool, ...]


POOLS = 500
TEXT = "pools:\n" + "".join(
    f"  - name: pool-{number}\n    provider: ${{PROVIDER}}\n    min_nodes: 2\n    max_nodes: {number + 2}\n"
    "    cooldown: 2h30m\n    ram: 2048GB\n"
    for number in range(POOLS)
)


def run(report: Report) -> None:
    ours = _milliseconds(lambda: loads(TEXT, Fleet, {"PROVIDER": "lambda"}))
    plain = _milliseconds(lambda: Fleet.model_validate(_tuples(yaml.safe_load(TEXT))))
    fast = _milliseconds(lambda: Fleet.model_validate(_tuples(yaml.load(TEXT, Loader=yaml.CSafeLoader))))
    report.compare(f"load {POOLS} pools", "ms", ours, ("yaml.safe_load + pydantic", plain))
    report.compare(f"load {POOLS} pools", "ms", ours, ("yaml.CSafeLoader + pydantic", fast))


def _tuples(value: dict[str, Any]) -> dict[str, Any]:
    return {"pools": tuple(value["pools"])}


def _milliseconds(work: Callable[[], object]) -> Callable[[], float]:
    def measure() -> float:
        began = time.perf_counter()
        work()
        return (time.perf_counter() - began) * 1000

    return measure
