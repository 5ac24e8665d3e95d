"""Runs a command line and turns any error into one message and one exit code."""

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
    """Returns the exit code of a command line. `main` of a console script is `sys.exit(run(app))`."""
    _prepare_streams()
    # The parent process may have reset SIGINT, which then kills the program without cleanup or a message.
    left = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    try:
        return _outcome(app, sys.argv[1:] if args is None else list(args), interruptible=left)
    except BrokenPipeError:
        return Exit.BROKEN_PIPE
    except KeyboardInterrupt:
        # A second Ctrl-C while an error is printed: exit without another message.
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
        from neorion.keel.cli.kit.errors import print_error  # noqa: PLC0415 -- most runs have no error

        return print_error(error, SharedOptions.guessed_from(args), app.name or "")
    return code


def _interrupted() -> int:
    sys.stderr.write("\n")
    return Exit.INTERRUPTED


def _comes_of_ctrl_c(error: BaseException | None) -> bool:
    """True if Ctrl-C caused the error.

    Python 3.11 wraps an error raised while a class is created, as when a command loads.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def completion_variable(program: str) -> str:
    """The variable in which a shell requests completions; the name is click's."""
    return f"_{program.replace('-', '_').upper()}_COMPLETE"


def _invoke(app: App, args: list[str]) -> int:
    program = app.name or ""
    variable = completion_variable(program)
    instruction = os.environ.get(variable)
    if instruction:
        return shell_complete(app, {}, program, variable, instruction)
    with app.make_context(program, args) as ctx:
        code = app.invoke(ctx)
    return int(code or Exit.OK)


def _prepare_streams() -> None:
    """Opens closed streams, and escapes characters that the locale cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 -- stays open for as long as we do
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _settle(stream: TextIO) -> None:
    """Flushes a stream. Python flushes once more at exit and would complain about a pipe or disk that is gone."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
