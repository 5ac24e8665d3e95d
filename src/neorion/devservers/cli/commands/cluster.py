"""`devctl flavors`, `status`, `info`, `test-k8s`."""

import click

from neorion.devservers.cli.options import ClusterSelector, where_options
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("flavors", cls=Command)
@click.option("--aws", is_flag=True, allow_from_autoenv=False, help="Only machines of AWS.")
@where_options
def flavors_command(out: Output, where: ClusterSelector, *, aws: bool) -> None:
    """List the kinds of machines there are."""
    from neorion.devservers.cli.commands import cluster_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: cluster_impl.flavors(fleet, out, "aws" if aws else ""))


@click.command("status", cls=Command)
@where_options
def status_command(out: Output, where: ClusterSelector) -> None:
    """Show the cluster, your servers and the flavors."""
    from neorion.devservers.cli.commands import cluster_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: cluster_impl.status(fleet, out))


@click.command("info", cls=Command)
@where_options
@click.pass_context
def info_command(ctx: click.Context, out: Output, where: ClusterSelector) -> None:
    """Show what devctl can do, and where it would do it.

    Asks nobody: it also works where no cluster answers.
    """
    from neorion.devservers.cli.commands import cluster_impl  # noqa: PLC0415 -- the help does not need it

    cluster_impl.info(out, where, ctx)


@click.command("test-k8s", cls=Command)
@where_options
def test_command(out: Output, where: ClusterSelector) -> int:
    """Check that the cluster answers and what you may do.

    The exit code is 1 if something that devctl needs is not allowed.
    """
    from neorion.devservers.cli.commands import cluster_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    return run_with_api(out, where, lambda fleet: cluster_impl.check(fleet, out))
