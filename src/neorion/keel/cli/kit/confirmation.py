"""Questions before something is changed. Without a person at the terminal there is nobody to ask."""

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
            f'Nobody is here to answer "{question}"',
            hint="Add --yes to go ahead without a question.",
        )
    if not click.confirm(question, err=True):
        raise Terminal("cli.declined", "Nothing was changed.")
