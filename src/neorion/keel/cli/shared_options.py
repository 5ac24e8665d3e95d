"""The options that every command takes, and their values."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

import click

# One set of variables for all command lines, so that a user sets JSON output once.
_PREFIX: Final = "NEORION"


class Format(StrEnum):
    """The values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class ColorMode(StrEnum):
    """The values of `--color`."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class SuggestingChoice(click.Choice[str]):
    """A choice that suggests the most similar value for a wrong one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ANN401 -- click's own
        from neorion.keel.base import did_you_mean  # noqa: PLC0415 -- the help does not need it

        del ctx
        return f'"{value}" is not one of them; {did_you_mean(str(value), self.choices)}'


class SharedOption(click.Option):
    """Listed in its own section of the help, because every command has it."""


class SharedOptions(NamedTuple):
    """The values of the shared options."""

    output: Format = Format.TABLE
    color: ColorMode = ColorMode.AUTO
    quiet: bool = False
    debug: bool = False

    @classmethod
    def taken_from(cls, params: dict[str, Any]) -> Self:
        """Removes the shared values from a command's own."""
        return cls(
            Format(params.pop("output", None) or Format.TABLE),
            ColorMode(params.pop("color", None) or ColorMode.AUTO),
            bool(params.pop("quiet", False)),
            bool(params.pop("debug", False)),
        )

    @classmethod
    def guessed_from(cls, args: Sequence[str]) -> Self:
        """The shared options of a command line that failed to parse, read leniently, for printing its error."""
        settings: dict[str, Any] = {
            "ignore_unknown_options": True,
            "allow_extra_args": True,
            "help_option_names": [],
        }
        command = click.Command("any", params=[*shared_options()], context_settings=settings)
        return cls.taken_from(command.make_context("any", list(args), resilient_parsing=True).params)


def shared_options() -> list[SharedOption]:
    def option(*names: str, **attributes: Any) -> SharedOption:  # noqa: ANN401 -- click's own
        return SharedOption(
            list(names), envvar=f"{_PREFIX}_{names[-1].lstrip('-').upper()}", show_envvar=True, **attributes
        )

    return [
        option(
            "-o",
            "--output",
            type=SuggestingChoice([each.value for each in Format]),
            default=Format.TABLE.value,
            metavar="FORMAT",
            help="Output format: table, wide, json, yaml, name.",
        ),
        option(
            "--color",
            type=SuggestingChoice([each.value for each in ColorMode]),
            default=ColorMode.AUTO.value,
            metavar="WHEN",
            help="Colour: auto, always, never.",
        ),
        option("-q", "--quiet", is_flag=True, help="Results and errors only."),
        option("--debug", is_flag=True, help="Show the traceback of an error."),
    ]


yes_option = click.option(
    # Not from the environment: a confirmation is for one command, not for all that follow.
    "-y", "--yes", is_flag=True, allow_from_autoenv=False, help="Do not ask."
)  # fmt: skip
dry_run_option = click.option(
    "--dry-run", is_flag=True, allow_from_autoenv=False, help="Show what would be done, and do nothing."
)
