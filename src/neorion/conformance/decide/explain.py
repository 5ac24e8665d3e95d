"""The explanation of a requirement: its check, and what the evidence can and cannot show."""

import tomllib
from importlib import resources
from typing import Final

import msgspec
from msgspec import Struct

from neorion.conformance.model import Level, Requirement
from neorion.conformance.model.requirement import levels_of, title_of

# No suite has published a time for each of its checks.
OTHER_SUITES: Final = "All checks of AICR or of the Go suite take 3 to 75 minutes, with accelerators."


class Method(Struct, frozen=True, forbid_unknown_fields=True):
    """The check of a requirement. `best` is the strongest environment in which the check can run without hardware."""

    checks: str
    control: str
    needs: str
    hardware: str
    others: str = ""


class Explanation(Struct, frozen=True):
    """The whole explanation of a requirement."""

    id: str
    title: str
    category: str
    levels: dict[str, Level]
    summary: str
    description: str
    checks: str
    control: str
    needs: str
    hardware: str
    others: str


def explain(requirement: Requirement) -> Explanation:
    method = _METHODS[requirement.id]
    return Explanation(
        requirement.id,
        title_of(requirement.id),
        str(requirement.category),
        levels_of(requirement.id),
        requirement.summary,
        requirement.description,
        method.checks,
        method.control,
        method.needs,
        method.hardware,
        method.others,
    )


def method_of(requirement_id: str) -> Method:
    return _METHODS[requirement_id]


_METHODS: Final = msgspec.convert(
    tomllib.loads(resources.files(__package__ or __name__).joinpath("methods.toml").read_text("utf-8")),
    dict[str, Method],
)
