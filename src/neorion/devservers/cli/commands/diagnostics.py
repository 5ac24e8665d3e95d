"""`devctl describe`, `doctor`, `events`, `cost`, `monitor`."""

import click

from neorion.devservers.cli.options import (
    ClusterSelector,
    maybe_name_argument,
    name_argument,
    some_names_argument,
    where_options,
)
from neorion.keel.base import Duration, Invalid
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output

# A look asks the API server and every server with a GPU.
_PAUSE_MIN = Duration.of(seconds=1)


@click.command("describe", cls=Command)
@name_argument
@where_options
def describe_command(out: Output, name: str, where: ClusterSelector) -> None:
    """Show all there is to know of a server.

    What would stop it and when, what it costs, and what is in its way.
    """
    from neorion.devservers.cli.commands import diagnostics_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: diagnostics_impl.describe(fleet, out, name))


@click.command("doctor", cls=Command)
@some_names_argument(metavar="[NAME]...")
@click.option("--aws", is_flag=True, allow_from_autoenv=False, help="Check the installation on AWS instead.")
@where_options
def doctor_command(out: Output, names: tuple[str, ...], where: ClusterSelector, *, aws: bool) -> int:
    """Say why a server does not run, and what would help.

    Without a name, of all your servers. With --aws, check the installation: volumes, machines, GPUs, the bastion,
    metrics. The exit code is 1 if something does not work.
    """
    from neorion.devservers.cli.commands import diagnostics_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    if aws and names:
        raise Invalid(
            "devservers.doctor_of_what",
            "--aws checks the whole installation, not one server.",
            hint=f"Run devctl doctor --aws, or devctl doctor {names[0]}.",
        )
    if aws:
        return run_with_api(out, where, lambda fleet: diagnostics_impl.doctor_aws(fleet, out))
    return run_with_api(out, where, lambda fleet: diagnostics_impl.doctor(fleet, out, names))


@click.command("events", cls=Command)
@name_argument
@where_options
def events_command(out: Output, name: str, where: ClusterSelector) -> None:
    """Show what happened to a server."""
    from neorion.devservers.cli.commands import diagnostics_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: diagnostics_impl.events(fleet, out, name))


@click.command("cost", cls=Command)
@maybe_name_argument
@click.option(
    "--by-user",
    is_flag=True,
    allow_from_autoenv=False,
    help="One line for each user, for who may see all servers of the cluster.",
)
@where_options
def cost_command(out: Output, name: str, where: ClusterSelector, *, by_user: bool) -> None:
    """Show what servers have cost.

    Without a name, all your servers and their sum.
    """
    from neorion.devservers.cli.commands import cost_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    if by_user:
        cost_impl.check_alone(name)
        run_with_api(out, where, lambda fleet: cost_impl.by_user(fleet, out))
    else:
        run_with_api(out, where, lambda fleet: cost_impl.cost(fleet, out, name))


@click.command("monitor", cls=Command)
@some_names_argument(metavar="[NAME]...")
@click.option("--every", default="5s", metavar="TIME", help="How often to look.")
@click.option("--once", is_flag=True, allow_from_autoenv=False, help="Look once, and end.")
@where_options
def monitor_command(
    out: Output, names: tuple[str, ...], where: ClusterSelector, *, every: str, once: bool
) -> None:
    """Watch servers and what they use.

    CPU and memory as the cluster measures them, GPUs as nvidia-smi in the server tells. Ctrl-C ends it.
    """
    from neorion.devservers.cli.commands import monitor_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import parse_timeout, run_with_api  # noqa: PLC0415 -- as above

    pause = None if once else parse_timeout(every)
    if pause is not None and pause < _PAUSE_MIN:
        raise Invalid(
            "devservers.every", f"{every} is too short a pause.", hint="Wait 1s or more; or say --once."
        )
    run_with_api(out, where, lambda fleet: monitor_impl.monitor(fleet, out, names, pause))
