"""`neorion conformance list` and `explain`."""

import click

from neorion.conformance.cli.options import version_option
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("list", cls=Command)
@version_option
def list_command(out: Output, version: str) -> None:
    """List the requirements of a version."""
    from neorion.conformance.cli.tables import REQUIREMENTS  # noqa: PLC0415 -- the help does not need it
    from neorion.conformance.model import requirements  # noqa: PLC0415 -- as above

    out.show(requirements(version), REQUIREMENTS)


@click.command("explain", cls=Command)
@click.argument("requirement")
def explain_command(out: Output, requirement: str) -> None:
    """Explain a requirement: what it asks, how it is checked, what only hardware can show."""
    from neorion.conformance.cli.tables import EXPLANATION  # noqa: PLC0415 -- the help does not need it
    from neorion.conformance.decide.explain import explain  # noqa: PLC0415 -- as above
    from neorion.conformance.model import requirement_named  # noqa: PLC0415 -- as above

    out.show_one(explain(requirement_named(requirement)), EXPLANATION)
