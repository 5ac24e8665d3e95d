"""`neorion doctor`: checks what this machine can run."""

import locale
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from neorion.keel.base import Finding, Severity
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output, extras, install_command, missing_packages, show_findings

# Before 3.51.3 a write and a checkpoint at the same time could lose committed pages.
SQLITE_MIN: Final = (3, 51, 3)


@click.command("doctor", cls=Command)
@click.option(
    "--state-dir", type=click.Path(path_type=Path), metavar="FOLDER", help="Where state is to be kept."
)
def doctor(out: Output, state_dir: Path | None) -> int:
    """Check what this machine can run."""
    folder = state_dir or default_state_dir(out.env)
    findings = [
        Finding(
            Severity.INFO, "doctor.python", "python", f"{platform.python_version()} at {sys.executable}."
        ),
        sqlite_engine(),
        *optional_packages(),
        state_folder(folder),
        text_encoding(locale.getpreferredencoding(do_setlocale=False)),
        terminal(out),
    ]
    return show_findings(out, findings)


def default_state_dir(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_STATE_HOME") or Path(env.get("HOME", "/")) / ".local/state"
    return Path(home) / "neorion"


def sqlite_engine() -> Finding:
    try:
        import apsw  # noqa: PLC0415 -- an extra: may be missing
    except ImportError:
        sentence = "No engine for the embedded store: this machine can be a client only."
        hint = f"Install it: {install_command('server')}"
        return Finding(Severity.WARNING, "doctor.sqlite", "sqlite", sentence, hint)
    engine = apsw.sqlite_lib_version()
    if tuple(map(int, engine.split("."))) < SQLITE_MIN:
        sentence = f"The engine in apsw is {engine}, which can lose committed data."
        return Finding(Severity.ERROR, "doctor.sqlite", "sqlite", sentence, "pip install --upgrade apsw")
    return Finding(Severity.INFO, "doctor.sqlite", "sqlite", f"{engine} in apsw {apsw.apsw_version()}.")


def optional_packages() -> Iterator[Finding]:
    for extra, packages in extras().items():
        missing = missing_packages(extra)
        subject = f"extra {extra}"
        if missing:
            sentence = f"Not installed: {', '.join(missing)}."
            hint = f"If this machine needs it: {install_command(extra)}"
            yield Finding(Severity.WARNING, "doctor.extra", subject, sentence, hint)
        else:
            yield Finding(Severity.INFO, "doctor.extra", subject, f"Installed: {', '.join(packages)}.")


def state_folder(folder: Path) -> Finding:
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        what = "is writable" if existing == folder else "can be created"
        return Finding(Severity.INFO, "doctor.state_dir", "state folder", f"{folder} {what}.")
    return Finding(
        Severity.ERROR,
        "doctor.state_dir",
        "state folder",
        f"{folder} cannot be used: {existing} is not a folder that this user may write to.",
        "Name another one with --state-dir.",
    )


def text_encoding(encoding: str) -> Finding:
    if encoding.lower().replace("-", "") == "utf8":
        return Finding(Severity.INFO, "doctor.locale", "locale", "UTF-8.")
    sentence = f"Texts are {encoding}: characters outside of it are shown as escapes."
    return Finding(Severity.WARNING, "doctor.locale", "locale", sentence, "export LANG=C.UTF-8")


def terminal(out: Output) -> Finding:
    columns = "No terminal, full width" if out.out.width is None else f"{out.out.width} columns"
    color = "colours on" if out.out.color else "colours off"
    return Finding(Severity.INFO, "doctor.terminal", "terminal", f"{columns}, {color}.")
