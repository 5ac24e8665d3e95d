"""Files of health policies."""

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Error
from neorion.keel.config import Model, Problem, load, loads
from neorion.navarch.decide.policy import RULES_MAX, Policy, Rule, compiled
from neorion.navarch.model import Health, PoolSpec

# The name of the policy that comes with navarch.
DEFAULT: Final = "default"

RemedyName = Literal["nothing", "restart_workload", "reset_gpu", "reboot", "replace", "rma"]


class Metadata(Model):
    """Name and purpose of the file."""

    name: str = Field(default="", description="A name for people.")
    description: str = Field(default="", description="What it is for.")


class RuleModel(Model):
    """One rule."""

    name: str = Field(min_length=1, max_length=100, description="Named in every verdict.")
    description: str = Field(default="", description="Why there is such a rule.")
    condition: str = Field(min_length=1, description="CEL over event, node, history, recent and xid.")
    result: Literal["healthy", "degraded", "unhealthy"] = Field(description="What it means for the node.")
    action: RemedyName | None = Field(
        default=None, description="What to do; if nothing is said, what the XID catalogue advises."
    )
    certain: bool | None = Field(default=None, description="One such event is enough.")

    def rule(self) -> Rule:
        remedy = None if self.action is None else Remedy(self.action)
        return Rule(self.name, self.condition, Health(self.result), remedy, self.certain, self.description)


class PolicyFile(Model):
    """Rules in the order in which they are asked."""

    version: str = Field(default="v1", description="The form of this file.")
    metadata: Metadata = Field(default_factory=Metadata, description="What it says of itself.")
    rules: tuple[RuleModel, ...] = Field(
        min_length=1, max_length=RULES_MAX, description="The first that matches decides."
    )

    def problems(self) -> Iterable[Problem]:
        names: set[str] = set()
        for index, rule in enumerate(self.rules):
            if rule.name in names:
                yield Problem(
                    ("rules", index, "name"), f'There are two rules "{rule.name}".', "Rename one of them."
                )
            names.add(rule.name)
            try:
                compiled(Policy("this file", (rule.rule(),)))
            except Error as error:
                yield Problem(("rules", index, "condition"), error.sentence, error.hint)

    def policy(self, name: str) -> Policy:
        return Policy(name, tuple(rule.rule() for rule in self.rules))


def default_policy() -> Policy:
    text = resources.files(__package__ or __name__).joinpath("default_policy.yaml").read_text("utf-8")
    return loads(text, PolicyFile, {}, file="the default policy").policy(DEFAULT)


def policies_of(specs: Mapping[str, PoolSpec], folder: Path, env: Mapping[str, str]) -> dict[str, Policy]:
    """Every policy that a pool names, by that name; relative paths start at the folder of the configuration."""
    found = {DEFAULT: default_policy()}
    for spec in specs.values():
        name = spec.health.policy
        if name not in found:
            found[name] = load(folder / name, PolicyFile, env).policy(name)
    return found
