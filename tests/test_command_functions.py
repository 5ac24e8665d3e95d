"""Each command names the function that does its work; the name resolves and the parameters fit."""

import inspect

import click
import pytest

from neorion.cli import app
from neorion.keel.cli import App, Command
from neorion.keel.cli.shared_options import SharedOptions
from tests.command_tree import COMMANDS


def found(path: tuple[str, ...]) -> click.Command:
    command: click.Command = app
    for name in path:
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), name)
        assert below is not None
        command = below
    return command


def works(command: Command) -> None:
    """Binds what click passes to the parameters of the function that does the work."""
    passed = command.make_context("planted", [], resilient_parsing=True).params
    SharedOptions.taken_from(passed)
    inspect.signature(command.implementation()).bind("out", **passed)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_a_function_that_takes_its_parameters(path: tuple[str, ...]):
    command = found(path)
    if isinstance(command, Command):
        works(command)
    else:
        assert isinstance(command, App)


@pytest.mark.parametrize(
    "run", [".test_command_functions:nothing", ".no_module:call", ".test_command_functions:found"]
)
def test_a_function_that_does_not_exist_or_does_not_fit_is_found(run: str):
    @click.command("planted", cls=Command, run=run)
    @click.option("--planted")
    def planted() -> None: ...

    assert isinstance(planted, Command)
    planted.callback.__module__ = f"{__name__}.planted"  # as in a package
    with pytest.raises((AttributeError, ImportError, TypeError)):
        works(planted)
