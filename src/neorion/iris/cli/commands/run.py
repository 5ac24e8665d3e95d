"""`iris run`: a command, on the cluster, as if it ran here."""

from functools import partial
from pathlib import Path

import click

from neorion.iris.cli.options import BANDS, controller_option
from neorion.keel.cli import Command, SuggestingChoice, dry_run_option

# What may be given more than once is not taken from the environment: a variable would be cut at its spaces.
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
    "--name", allow_from_autoenv=False, help="The job's name; made from the command if none is given."
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
    help="All tasks start together, on workers that share this attribute; slice if none is named.",
)
@_many("--env", metavar="KEY=VALUE", help="A variable for the command; may be given more than once.")
@_many(
    "--env-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file of such variables, one in a line; --env wins.",
)
@_many("--require", metavar="RULE", help='Only workers like this: "zone=lga1", "gpu-memory>=80".')
@_many("--prefer", metavar="RULE", help="Rather workers like this.")
@click.option("--spread", metavar="ATTRIBUTE", help="Rather on workers that differ in this.")
@click.option(
    "--priority",
    type=SuggestingChoice(BANDS),
    metavar="BAND",
    help="Priority: production, interactive or batch.",
)
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Tries after a failure.")
@click.option(
    "--preemption-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="Tries after it lost its worker or its place; 100 if none is given.",
)
@click.option(
    "--max-failed-tasks", type=click.IntRange(min=0), default=0, metavar="N", help="Tasks that may fail."
)
@click.option("--timeout", metavar="TIME", help='Longest run, as in "30m" or "2h".')
@click.option("--scheduling-timeout", metavar="TIME", help="Longest wait for a place.")
@_many("--port", "ports", metavar="NAME", help="A port for each task, told as IRIS_PORT_NAME.")
@_many("--package", "packages", metavar="NAME", help="A Python package the command needs.")
@_many("--setup", metavar="COMMAND", help="A shell command to run before it.")
@click.option("--bundle/--no-bundle", default=True, help="Send the working directory along.")
@_many("--exclude", metavar="GLOB", help="Leave such files out of it.")
@click.option("--key", allow_from_autoenv=False, help="The same key twice is the same job.")
@click.option("--detach", is_flag=True, allow_from_autoenv=False, help="Do not wait for the end.")
@dry_run_option
@controller_option
def run_command() -> None:
    """Run a command on the cluster.

    The working directory goes along: in a git repository the files that git does not ignore. What the command writes
    appears here, and its exit code becomes ours. Ctrl-C cancels it.
    """
