"""The requirements of the program, by version, as its own templates state them."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any, Final

from neorion.keel.base import Invalid, NotFound, did_you_mean

VERSIONS: Final = ("1.33", "1.34", "1.35", "1.36", "1.37")
# Words that are written in capitals in a title.
_CAPITALS: Final = frozenset({"DRA", "API", "GPU", "AI", "URL", "CRD"})


class Level(StrEnum):
    """The level of obligation of a requirement."""

    MUST = "MUST"
    SHOULD = "SHOULD"


class Category(StrEnum):
    """A group of requirements, by its key in PRODUCT.yaml."""

    ACCELERATORS = "accelerators"
    NETWORKING = "networking"
    SCHEDULING = "schedulingOrchestration"
    OBSERVABILITY = "observability"
    SECURITY = "security"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of one version. `summary` is ours, `description` is the template's."""

    id: str
    category: Category
    level: Level
    summary: str
    description: str


def title_of(requirement_id: str) -> str:
    """`dra_support` becomes "DRA Support"."""
    words = (
        word.upper() if word.upper() in _CAPITALS else word[:1].upper() + word[1:]
        for word in requirement_id.split("_")
    )
    return " ".join(words)


def requirements(version: str) -> tuple[Requirement, ...]:
    """All requirements of a version, in the order of its template."""
    if version not in VERSIONS:
        raise Invalid(
            "conformance.version",
            f'"{version}" is not a version of the program.',
            hint=did_you_mean(version, VERSIONS) or f"Choose one of {', '.join(VERSIONS)}.",
        )
    found = (_of(name, row, version) for name, row in _TABLE.items() if version in row["levels"])
    order = list(Category)
    return tuple(sorted(found, key=lambda each: order.index(each.category)))


def requirement_ids(version: str | None = None) -> tuple[str, ...]:
    """The ids of a version; without one, of all versions."""
    return tuple(_TABLE) if version is None else tuple(each.id for each in requirements(version))


def requirement_named(name: str, version: str | None = None) -> Requirement:
    """A requirement as one version states it; without one, as the newest that has it does."""
    row = _TABLE.get(name)
    if row is None or (version is not None and version not in row["levels"]):
        where = f"Version {version} has" if version else "There is"
        raise NotFound(
            "conformance.no_requirement",
            f'{where} no requirement "{name[:60]}".',
            hint=did_you_mean(name, requirement_ids(version)),
        )
    return _of(name, row, version or max(row["levels"], key=VERSIONS.index))


def levels_of(name: str) -> dict[str, Level]:
    """The level of a requirement in each version that has it."""
    return {version: Level(level) for version, level in _TABLE[name]["levels"].items()}


def _of(name: str, row: dict[str, Any], version: str) -> Requirement:
    description = row.get("descriptions", {}).get(version, row["description"])
    return Requirement(
        name, Category(row["category"]), Level(row["levels"][version]), row["summary"], description
    )


_TABLE: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    resources.files(__package__ or __name__).joinpath("requirements.toml").read_text("utf-8")
)
