"""`neorion drydock node`."""

import click

from neorion.drydock.cli.options import name_option
from neorion.keel.cli import App
from neorion.keel.cli.kit import Output, require_extra

node = App("node", help="Add and remove nodes.")


@node.command("add")
@name_option
@click.option(
    "--simulated",
    metavar="N[:TYPE]",
    required=True,
    help='Nodes that only the API server knows: "10:h100x8".',
)
def add_command(out: Output, name: str, simulated: str) -> None:
    """Add nodes to a cluster."""
    require_extra("drydock")
    require_extra("kube")
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.drydock.simulated import Group, add_simulated  # noqa: PLC0415 -- as above
    from neorion.drydock.yard import Yard  # noqa: PLC0415 -- as above

    group = Group.parse(simulated)
    anyio.run(add_simulated, Yard.of(out.env).find(name), group)
    out.say(f"{group.count} simulated nodes of type {group.type} are Ready.")
