"""`iris job`: lists, logs, waits and cancellations of jobs."""

import click

from neorion.iris.cli.options import (
    attempt_option,
    controller_option,
    follow_option,
    state_option,
    tail_option,
)
from neorion.keel.cli import App, dry_run_option, yes_option

job = App("job", help="List, follow, wait for and cancel jobs.")

_job = click.argument("name", metavar="JOB")


@job.command("list", run=".job_impl:list_command")
@click.argument("prefix", default="")
@state_option
@click.option("--all", "everything", is_flag=True, allow_from_autoenv=False, help="Include ended jobs.")
@click.option("-w", "--watch", is_flag=True, allow_from_autoenv=False, help="Watch for changes.")
@controller_option
def list_command() -> None:
    """List jobs, newest first. PREFIX is the beginning of their names."""


@job.command("describe", run=".job_impl:describe_command")
@_job
@controller_option
def describe_command() -> None:
    """Show the details of a job."""


@job.command("logs", run=".job_impl:logs_command")
@_job
@click.option(
    "--task", type=click.IntRange(min=0), allow_from_autoenv=False, metavar="N", help="Show only this task."
)
@attempt_option
@follow_option
@tail_option
@controller_option
def logs_command() -> None:
    """Show the output of a job. With several tasks, each line begins with the task's number."""


@job.command("wait", runs_user_command=True, run=".job_impl:wait_command")
@_job
@click.option("--timeout", metavar="TIME", help='Longest wait, e.g. "30s" or "2h".')
@controller_option
def wait_command() -> None:
    """Wait until a job has ended, and exit with its exit code."""


@job.command("cancel", run=".job_impl:cancel_command")
@click.argument("names", metavar="JOB...", nargs=-1, required=True)
@dry_run_option
@yes_option
@controller_option
def cancel_command() -> None:
    """Cancel jobs and their child jobs."""
