"""`neorion explain CODE`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from neorion.keel.base import FAMILIES, Error, NotFound, did_you_mean
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Column, Output, Table

# The meaning of each code, generated from the source.
_CODES: Final = Path(__file__).with_name("codes.json")


@dataclass(frozen=True, slots=True)
class ErrorMeaning:
    """A family of errors, one error of it, or a reason why a job waits or has ended, which has no family."""

    code: str
    family: str
    exit_code: int | None
    http_status: int | None
    meaning: str


_MEANINGS: Final[Table[ErrorMeaning]] = Table(
    (
        Column("CODE", lambda each: each.code),
        Column("FAMILY", lambda each: each.family, wide=True),
        Column("EXIT", lambda each: each.exit_code, right=True),
        Column("HTTP", lambda each: each.http_status, priority=1, right=True),
        Column("MEANING", lambda each: each.meaning, wrap=True),
    ),
    name=lambda each: each.code,
)


@click.command("explain", cls=Command)
@click.argument("code", required=False)
def explain(out: Output, code: str | None) -> None:
    """Explain an error code. Without CODE, list the families."""
    families = {name: _meaning(name, family, family.__doc__ or "") for name, family in FAMILIES.items()}
    if code is None:
        out.show([*families.values()], _MEANINGS)
        return
    known = families | _codes()
    if code not in known:
        raise NotFound(
            "cli.unknown_code", f'The error code "{code}" does not exist.', hint=did_you_mean(code, known)
        )
    out.show_one(known[code], _MEANINGS)


def _meaning(code: str, family: type[Error], meaning: str) -> ErrorMeaning:
    return ErrorMeaning(code, family.family, family.exit_code, family.http_status, meaning)


def _codes() -> dict[str, ErrorMeaning]:
    rows: dict[str, dict[str, str]] = json.loads(_CODES.read_text())
    return {
        code: _meaning(code, FAMILIES[row["family"]], row["meaning"])
        if row["family"]
        else ErrorMeaning(code, "", None, None, row["meaning"])
        for code, row in rows.items()
    }
