"""`devctl list`. Apart from the other commands that look: it is what people type most, and wait for."""

import click

from neorion.devservers.cli.options import ClusterSelector, where_options
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("list", cls=Command)
@click.option("-w", "--watch", is_flag=True, allow_from_autoenv=False, help="Show changes as they come.")
@where_options
def list_command(out: Output, where: ClusterSelector, *, watch: bool) -> None:
    """List your servers."""
    with out.waiting("asking the cluster"):
        from neorion.devservers.cli.commands import list_impl  # noqa: PLC0415 -- the help does not need it
        from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

        found = None if watch else run_with_api(out, where, list_impl.found)
    if found is None:
        run_with_api(out, where, lambda fleet: list_impl.watch(fleet, out))
    else:
        out.show(*found)
