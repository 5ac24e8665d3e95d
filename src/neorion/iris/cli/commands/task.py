"""`iris task`: the tasks of a job."""

import click

from neorion.iris.cli.options import (
    attempt_option,
    controller_option,
    follow_option,
    state_option,
    tail_option,
)
from neorion.keel.cli import App

task = App("task", help="List the tasks of a job.")

_job = click.argument("name", metavar="JOB")
_number = click.argument("task", metavar="TASK", type=click.IntRange(min=0))


@task.command("list", run=".task_impl:list_command")
@_job
@state_option
@controller_option
def list_command() -> None:
    """List the tasks of a job."""


@task.command("describe", run=".task_impl:describe_command")
@_job
@_number
@controller_option
def describe_command() -> None:
    """Show the details of a task."""


@task.command("attempts", run=".task_impl:attempts_command")
@_job
@_number
@controller_option
def attempts_command() -> None:
    """List the attempts of a task, with their workers and ends."""


@task.command("logs", run=".task_impl:logs_command")
@_job
@_number
@attempt_option
@follow_option
@tail_option
@controller_option
def logs_command() -> None:
    """Show the output of a task."""
