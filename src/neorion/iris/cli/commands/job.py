"""`iris job`: what is there, what it writes, how it ends."""

from typing import TypedDict, Unpack

import click

from neorion.iris.cli.options import (
    attempt_option,
    controller_option,
    follow_option,
    state_option,
    tail_option,
)
from neorion.keel.cli import App, dry_run_option, yes_option
from neorion.keel.cli.kit import Output

job = App("job", help="See, follow, await and cancel jobs.")

_job = click.argument("name", metavar="JOB")


@job.command("list")
@click.argument("prefix", default="")
@state_option
@click.option(
    "--all", "everything", is_flag=True, allow_from_autoenv=False, help="Also those that have ended."
)
@click.option("-w", "--watch", is_flag=True, allow_from_autoenv=False, help="Show changes as they come.")
@controller_option
def list_command(
    out: Output, controller: str, prefix: str, states: tuple[str, ...], *, everything: bool, watch: bool
) -> None:
    """List jobs, the newest first. PREFIX is how their names begin."""
    from neorion.iris.cli.commands import job_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above

    chosen = list(states) if everything or states else ["pending", "running"]
    question = job_impl.watch if watch else job_impl.show_list
    ask(out, controller, lambda client: question(client, out, prefix, chosen))


@job.command("describe")
@_job
@controller_option
def describe_command(out: Output, controller: str, name: str) -> None:
    """Show all there is to know of one job."""
    from neorion.iris.cli.commands import job_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above

    ask(out, controller, lambda client: job_impl.describe(client, out, name))


class LogSelection(TypedDict):
    """Which part of a job's logs is meant."""

    task: int | None
    attempt: int | None
    follow: bool
    tail: int | None


@job.command("logs")
@_job
@click.option(
    "--task", type=click.IntRange(min=0), allow_from_autoenv=False, metavar="N", help="Only this task."
)
@attempt_option
@follow_option
@tail_option
@controller_option
def logs_command(out: Output, controller: str, name: str, **which: Unpack[LogSelection]) -> None:
    """Show what a job writes. Of several tasks, each line carries its task's number."""
    from neorion.iris.cli.commands import job_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above

    ask(out, controller, lambda client: job_impl.logs(client, out, name, which))


@job.command("wait", runs_user_command=True)
@_job
@click.option("--timeout", metavar="TIME", help='Give up after so long, as in "30s" or "2h".')
@controller_option
def wait_command(out: Output, controller: str, name: str, timeout: str | None) -> int:
    """Wait until a job has ended, and exit as it did."""
    from neorion.iris.cli.commands import job_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above

    return ask(out, controller, lambda client: job_impl.wait(client, out, name, timeout))


@job.command("cancel")
@click.argument("names", metavar="JOB...", nargs=-1, required=True)
@dry_run_option
@yes_option
@controller_option
def cancel_command(out: Output, controller: str, names: tuple[str, ...], *, dry_run: bool, yes: bool) -> None:
    """Cancel jobs, and with each every job submitted from within it."""
    from neorion.iris.cli.commands import job_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above

    ask(out, controller, lambda client: job_impl.cancel(client, out, names, yes=yes, dry_run=dry_run))
