"""Runs a command line and turns whatever comes out of it into one message and one exit code."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

import click
from click.shell_completion import shell_complete

from neorion.keel.cli.app import App
from neorion.keel.cli.exit_codes import Exit
from neorion.keel.cli.shared_options import SharedOptions


def run(app: App, args: Sequence[str] | None = None) -> int:
    """The exit code of a command line. `main` of a console script is `sys.exit(run(app))`."""
    _prepare_streams()
    # Whoever loaded us may have left Ctrl-C to the system, which ends a program without a word, where it stands.
    left = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    try:
        return _outcome(app, sys.argv[1:] if args is None else list(args), interruptible=left)
    except BrokenPipeError:
        return Exit.BROKEN_PIPE
    except KeyboardInterrupt:
        # Amid the telling of an error: who does not want to hear it is not told of another.
        return Exit.INTERRUPTED
    finally:
        if left:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        _settle(sys.stdout)
        _settle(sys.stderr)


def _outcome(app: App, args: list[str], *, interruptible: bool) -> int:
    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _invoke(app, args)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(f"{error.format_message()}\n")
        return Exit.USAGE
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 -- the last line of defence
        if _comes_of_ctrl_c(error):
            return _interrupted()
        from neorion.keel.cli.kit.errors import print_error  # noqa: PLC0415 -- most runs have nothing to tell

        return print_error(error, SharedOptions.guessed_from(args), app.name or "")
    return code


def _interrupted() -> int:
    sys.stderr.write("\n")
    return Exit.INTERRUPTED


def _comes_of_ctrl_c(error: BaseException | None) -> bool:
    """Python 3.11 wraps what happens while a class is made: a command that is interrupted while it loads its parts."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def completion_variable(program: str) -> str:
    """The variable in which a shell asks for completions; click's own name for it."""
    return f"_{program.replace('-', '_').upper()}_COMPLETE"


def _invoke(app: App, args: list[str]) -> int:
    program = app.name or ""
    variable = completion_variable(program)
    asked = os.environ.get(variable)
    if asked:
        return shell_complete(app, {}, program, variable, asked)
    with app.make_context(program, args) as ctx:
        code = app.invoke(ctx)
    return int(code or Exit.OK)


def _prepare_streams() -> None:
    """A program may be started with its streams closed, or in a locale that cannot write what it has to say."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 -- stays open for as long as we do
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _settle(stream: TextIO) -> None:
    """Python writes what is left once more at its end, and would complain about a pipe or disk that is gone."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
