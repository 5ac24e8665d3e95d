"""Implementation of `iris why`."""

from neorion.iris.cli.exit_status import WHY, why
from neorion.iris.cli.session import ask
from neorion.keel.cli.kit import Output


def why_command(out: Output, controller: str, name: str) -> None:
    out.show_one(why(ask(out, controller, lambda client: client.get(name))), WHY)
