"""The paths of all commands of `neorion`."""

from collections.abc import Iterator

import click

from neorion.cli import app


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from commands(below, (*path, name))


COMMANDS = list(commands(app))
