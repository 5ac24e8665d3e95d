"""The work of `navarch watch`."""

from neorion.keel.base import Duration, Invalid, UnitError
from neorion.keel.cli.kit import Output
from neorion.navarch.cli.event_printer import EventPrinter
from neorion.navarch.cli.session import ask


def watch(out: Output, pool: str, span: str, server: str) -> None:
    try:
        most = Duration.parse(span).seconds if span else None
    except UnitError as error:
        raise Invalid("navarch.span", f"{error}.", hint="Write --for 10m.") from None
    ask(out, server, lambda client: EventPrinter(out, client, pool).follow(most))
