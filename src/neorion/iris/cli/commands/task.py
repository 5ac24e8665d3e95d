"""`iris task`: the parts of a job."""

from typing import Unpack

import click

from neorion.iris.cli.commands.job import LogSelection
from neorion.iris.cli.options import (
    attempt_option,
    controller_option,
    follow_option,
    state_option,
    tail_option,
)
from neorion.keel.cli import App
from neorion.keel.cli.kit import Output

task = App("task", help="See the tasks of a job.")

_job = click.argument("name", metavar="JOB")
_number = click.argument("task", metavar="TASK", type=click.IntRange(min=0))


@task.command("list")
@_job
@state_option
@controller_option
def list_command(out: Output, controller: str, name: str, states: tuple[str, ...]) -> None:
    """List the tasks of a job."""
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.tables import TaskRecord, tasks_table  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    tasks = ask(out, controller, lambda client: client.tasks(name))
    chosen = [TaskRecord.of(one) for one in tasks if not states or one.state in states]
    out.show(chosen, tasks_table(SystemClock()))


@task.command("describe")
@_job
@_number
@controller_option
def describe_command(out: Output, controller: str, name: str, task: int) -> None:
    """Show all there is to know of one task, by its number."""
    from neorion.iris.cli.commands import job_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above
    from neorion.iris.cli.tables import TaskRecord, tasks_table  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    found = ask(out, controller, lambda client: job_impl.task(client, out, name, task))
    out.show_one(TaskRecord.of(found), tasks_table(SystemClock()))


@task.command("attempts")
@_job
@_number
@controller_option
def attempts_command(out: Output, controller: str, name: str, task: int) -> None:
    """List the tries of one task: where each ran, and how it ended."""
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.tables import AttemptRecord, attempts_table  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    found = ask(out, controller, lambda client: client.attempts(name, task))
    out.show([AttemptRecord.of(one) for one in found], attempts_table(SystemClock()))


@task.command("logs")
@_job
@_number
@attempt_option
@follow_option
@tail_option
@controller_option
def logs_command(out: Output, controller: str, name: str, **which: Unpack[LogSelection]) -> None:
    """Show what one task writes."""
    from neorion.iris.cli.commands import job_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- as above

    ask(out, controller, lambda client: job_impl.logs(client, out, name, which))
