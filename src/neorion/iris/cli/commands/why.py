"""`iris why`: one sentence, and what to do about it."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("why", cls=Command)
@click.argument("name", metavar="JOB")
@controller_option
def why_command(out: Output, controller: str, name: str) -> None:
    """Say why a job waits, or how it ended."""
    from neorion.iris.cli.exit_status import WHY, why  # noqa: PLC0415 -- as above
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it

    out.show_one(why(ask(out, controller, lambda client: client.get(name))), WHY)
