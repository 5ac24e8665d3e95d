"""Shared options of the commands. Cheap to import, because every help needs them."""

from typing import Final

import click

from neorion.keel.cli import SuggestingChoice

DEFAULT_CONTROLLER: Final = "http://localhost:10000"
# Copies of the model's enums, because importing the model would slow down every help.
STATES: Final = ("pending", "running", "succeeded", "failed", "cancelled")
BANDS: Final = ("production", "interactive", "batch")

controller_option = click.option(
    "--controller", default=DEFAULT_CONTROLLER, metavar="URL", help="URL of the controller."
)
state_option = click.option(
    "--state",
    "states",
    multiple=True,
    type=SuggestingChoice(STATES),
    allow_from_autoenv=False,
    metavar="STATE",
    help="Show only this state. Repeatable.",
)
# Options that select a part of a log.
attempt_option = click.option(
    "--attempt",
    type=click.IntRange(min=1),
    allow_from_autoenv=False,
    metavar="N",
    help="Attempt to show (default: the last one).",
)
follow_option = click.option(
    "-f",
    "--follow",
    is_flag=True,
    allow_from_autoenv=False,
    help="Follow the output until the job has ended.",
)
tail_option = click.option(
    "--tail", type=click.IntRange(min=1), metavar="LINES", help="Show only the last lines of each task."
)
