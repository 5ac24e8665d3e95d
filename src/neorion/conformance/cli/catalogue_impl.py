"""The work of `neorion conformance list` and `explain`."""

from neorion.conformance.cli.tables import EXPLANATION, REQUIREMENTS
from neorion.conformance.decide.explain import explain
from neorion.conformance.model import requirement_named, requirements
from neorion.keel.cli.kit import Output


def list_command(out: Output, version: str) -> None:
    out.show(requirements(version), REQUIREMENTS)


def explain_command(out: Output, requirement: str) -> None:
    out.show_one(explain(requirement_named(requirement)), EXPLANATION)
