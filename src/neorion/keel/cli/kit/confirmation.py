"""Asks for confirmation before a change. Fails where no terminal is attached."""

import sys

import click

from neorion.keel.base import Invalid, Terminal


def confirm(question: str, *, yes: bool) -> None:
    """Returns if the answer is yes; raises otherwise."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Invalid(
            "cli.unconfirmed",
            f'Cannot ask "{question}": standard input or standard error is not a terminal.',
            hint="Add --yes to go ahead without a question.",
        )
    if not click.confirm(question, err=True):
        raise Terminal("cli.declined", "Nothing was changed.")
