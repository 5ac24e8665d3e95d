"""`iris run`: runs a command on the cluster like a local one."""

from functools import partial
from pathlib import Path

import click

from neorion.iris.cli.options import BANDS, controller_option
from neorion.keel.cli import Command, SuggestingChoice, dry_run_option

# Repeatable options are not read from the environment, because a variable would be split at its spaces.
_many = partial(click.option, multiple=True, allow_from_autoenv=False)


@click.command(
    "run",
    cls=Command,
    runs_user_command=True,
    context_settings={"allow_interspersed_args": False},
    run=".run_impl:run_command",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--name", allow_from_autoenv=False, help="Name of the job (default: generated from the command)."
)
@click.option("--gpu", metavar="KIND:N", help='GPUs for each task: "H100:8", "H100", "8".')
@click.option("--cpu", default="1", metavar="AMOUNT", help="Cores for each task.")
@click.option("--memory", default="1Gi", metavar="AMOUNT", help="Memory for each task.")
@click.option("--disk", metavar="AMOUNT", help="Disk for each task.")
@click.option(
    "--replicas",
    default=1,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of tasks that run the command.",
)
@click.option(
    "--gang",
    is_flag=False,
    flag_value="slice",
    metavar="[ATTRIBUTE]",
    help="Start all tasks together, on workers with the same value of this attribute (default: slice).",
)
@_many("--env", metavar="KEY=VALUE", help="Environment variable of the command. Repeatable.")
@_many(
    "--env-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File of environment variables, one per line. --env takes precedence.",
)
@_many(
    "--require",
    metavar="RULE",
    help='Run only on workers that match this constraint, e.g. "zone=lga1" or "gpu-memory>=80".',
)
@_many("--prefer", metavar="RULE", help="Prefer workers that match this constraint.")
@click.option("--spread", metavar="ATTRIBUTE", help="Spread tasks over different values of this attribute.")
@click.option(
    "--priority",
    type=SuggestingChoice(BANDS),
    metavar="BAND",
    help="Priority: production, interactive or batch.",
)
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Number of retries after a failure.")
@click.option(
    "--preemption-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of retries after a preemption or the loss of a worker (default: 100).",
)
@click.option(
    "--max-failed-tasks",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Number of tasks that may fail.",
)
@click.option("--timeout", metavar="TIME", help='Longest run, e.g. "30m" or "2h".')
@click.option("--scheduling-timeout", metavar="TIME", help="Longest wait for a worker.")
@_many(
    "--port", "ports", metavar="NAME", help="Allocate a port for each task, in the variable IRIS_PORT_NAME."
)
@_many("--package", "packages", metavar="NAME", help="Install this Python package.")
@_many("--setup", metavar="COMMAND", help="Run this shell command first.")
@click.option("--bundle/--no-bundle", default=True, help="Send the files of the working directory.")
@_many("--exclude", metavar="GLOB", help="Exclude these files.")
@click.option(
    "--key", allow_from_autoenv=False, help="Key of the submission. The same key returns the same job."
)
@click.option("--detach", is_flag=True, allow_from_autoenv=False, help="Return after the submission.")
@dry_run_option
@controller_option
def run_command() -> None:
    """Run a command on the cluster.

    The files of the working directory are sent, in a git repository without ignored files. The output of the command
    is shown, and its exit code is returned. Ctrl-C cancels the job.
    """
