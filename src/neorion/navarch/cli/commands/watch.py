"""`navarch watch`: what happens in the fleet, as it happens."""

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output
from neorion.navarch.cli.options import server_option


@click.command("watch", cls=Command)
@click.option("--pool", default="", metavar="NAME", help="Only this pool.")
@click.option("--for", "span", default="", metavar="DURATION", help="Stop after this long, as in 10m.")
@server_option
def watch(out: Output, pool: str, span: str, server: str) -> None:
    """Tell what happens in the fleet, until interrupted."""
    from neorion.keel.base import Duration, Invalid, UnitError  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.event_printer import EventPrinter  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- as above

    try:
        most = Duration.parse(span).seconds if span else None
    except UnitError as error:
        raise Invalid("navarch.span", f"{error}.", hint="write --for 10m") from None
    ask(out, server, lambda client: EventPrinter(out, client, pool).follow(most))
