"""`neorion version`."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Column, Output, Table


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of Neorion, Python and the platform."""

    version: str
    python: str
    platform: str


_VERSIONS: Final[Table[Versions]] = Table(
    (
        Column("NEORION", lambda each: each.version),
        Column("PYTHON", lambda each: each.python),
        Column("PLATFORM", lambda each: each.platform),
    ),
    name=lambda each: each.version,
)


@click.command("version", cls=Command)
def show_version(out: Output) -> None:
    """Show the versions of Neorion and of what it runs on."""
    out.show_one(Versions(version("neorion"), platform.python_version(), platform.platform()), _VERSIONS)
