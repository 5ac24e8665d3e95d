"""Prints an error for the person or the program that ran the command."""

import traceback
from typing import cast

import click

from neorion.keel.base import Error, Finding, Invalid, Terminal, did_you_mean
from neorion.keel.cli.app import NotStarted
from neorion.keel.cli.exit_codes import Exit
from neorion.keel.cli.kit.optional_extras import missing_extra
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.kit.serialize import as_json_line, plain
from neorion.keel.cli.kit.terminal import Tone, escape
from neorion.keel.cli.shared_options import Format, SharedOptions


def print_error(error: Exception, shared: SharedOptions, program: str) -> int:
    """Prints the error on stderr; returns the exit code."""
    cause = error.__cause__ if isinstance(error, NotStarted) else error
    known = _as_error(_first(cause or error), program)
    code = Exit.NOT_STARTED if isinstance(error, NotStarted) else known.exit_code
    findings: tuple[Finding, ...] = getattr(known, "findings", ())
    out = Output.of(shared)
    if shared.debug:
        out.err.write("".join(traceback.format_exception(cause or error)))
    if shared.output is Format.JSON:
        fields = {
            "family": known.family,
            "code": known.code,
            "sentence": known.sentence,
            "hint": known.hint,
            "exit_code": int(code),
            "findings": findings,
        }
        out.err.write(as_json_line(plain({"error": fields})))
        return code
    lines = [f"{out.err.paint('error:', Tone.BAD)} {escape(known.sentence)}"]
    for found in findings if len(findings) > 1 else ():
        lines.append(f"  {escape(found.subject)}")
        lines.append(f"    {escape(f'{found.sentence} {found.hint}'.rstrip())}")
    if known.hint:
        lines.append(f"{out.err.paint('hint:', Tone.WARNING)} {escape(known.hint)}")
    lines.append(f"{out.err.paint('code:', Tone.QUIET)} {known.code}")
    out.err.write("".join(f"{line}\n" for line in lines))
    return code


def _first(error: BaseException) -> BaseException:
    """Task groups wrap even a single error; of several, one that explains itself goes first."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = (group.subgroup(Error) or group).exceptions[0]
    return error


def _as_error(error: BaseException, program: str) -> Error:
    match error:
        case Error():
            return error
        case click.NoSuchOption() | click.exceptions.NoSuchCommand():
            # Without click's own suggestion: ours stands in the hint.
            return Invalid("cli.usage", error.message, hint=_usage_hint(error, program))
        case click.UsageError():
            # click lists choices on lines of their own; a sentence has one.
            sentence = " ".join(error.format_message().split())
            return Invalid("cli.usage", sentence, hint=_usage_hint(error, program))
        case click.ClickException():
            return Terminal("cli.failed", error.format_message())
        case OSError() if error.strerror:
            about = f"{error.filename}: " if error.filename else ""
            return Terminal("cli.system", f"{about}{error.strerror}.")
        case _:
            missing = missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
            return missing or Terminal(
                "cli.bug",
                f"This is a bug in {program}: {type(error).__name__}: {str(error)[:200]}",
                hint="Run the same command with --debug, and report what it shows.",
            )


def _usage_hint(error: click.UsageError, program: str) -> str:
    if error.ctx is None:
        return f"See: {program} --help"
    near = ""
    match error:
        case click.NoSuchOption():
            options = [name for param in error.ctx.command.get_params(error.ctx) for name in param.opts]
            near = did_you_mean(error.option_name, [name for name in options if name.startswith("-")])
        case click.exceptions.NoSuchCommand() if isinstance(error.ctx.command, click.Group):
            near = did_you_mean(error.command_name, error.ctx.command.list_commands(error.ctx))
        case _:
            pass
    if near and not near.endswith("?"):
        near += "."
    return f"{near} See: {error.ctx.command_path} --help".strip()
