import json
import os
import pickle

import click
import pytest

from neorion.keel.base import (
    FAMILIES,
    Conflict,
    Deadline,
    Denied,
    Error,
    Finding,
    Invalid,
    NoCapacity,
    NotFound,
    QuotaExceeded,
    Retry,
    Severity,
    Terminal,
    Unauthenticated,
)
from neorion.keel.cli import App, Exit, run
from neorion.keel.cli.kit import Output
from neorion.keel.config import InvalidConfig


def app_that(raises: BaseException | None = None, returns: int | None = None, *, users: bool = False) -> App:
    app = App("prog", env_prefix="PROG")

    @app.command("do", runs_user_command=users)
    @click.option("--count", type=int)
    def do(out: Output, count: int | None) -> int | None:
        """Do it."""
        del out, count
        if raises is not None:
            raise raises
        return returns

    return app


def while_loading() -> RuntimeError:
    """As Python 3.11 tells of Ctrl-C while a class is made."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    return error


def test_the_families_keep_their_exit_codes():
    assert {family: each.exit_code for family, each in FAMILIES.items()} == {
        Retry.family: Exit.UNREACHABLE,
        Deadline.family: Exit.TIMEOUT,
        Conflict.family: Exit.CONFLICT,
        Terminal.family: Exit.FAILED,
        NoCapacity.family: Exit.NO_CAPACITY,
        QuotaExceeded.family: Exit.QUOTA,
        NotFound.family: Exit.NOT_FOUND,
        Denied.family: Exit.DENIED,
        Unauthenticated.family: Exit.DENIED,
        Invalid.family: Exit.USAGE,
    }
    assert {each.name: each.value for each in Exit} == {
        "OK": 0, "FAILED": 1, "USAGE": 2, "NOT_FOUND": 3, "DENIED": 4, "CONFLICT": 5, "UNREACHABLE": 6,
        "NO_CAPACITY": 7, "QUOTA": 8, "TIMEOUT": 124, "NOT_STARTED": 125, "INTERRUPTED": 130, "BROKEN_PIPE": 141,
    }  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_an_error_is_a_sentence_a_hint_and_a_code(family: type[Error], capsys: pytest.CaptureFixture[str]):
    app = app_that(family("room.word", "It did not\x1b[1m work.", hint="Do this."))
    assert run(app, ["do"]) == family.exit_code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "error: It did not\\x1b[1m work.\nhint: Do this.\ncode: room.word\n"


def test_an_error_is_one_json_object_where_json_was_asked_for(capsys: pytest.CaptureFixture[str]):
    assert run(app_that(Conflict("room.word", "No.", hint="Read.")), ["do", "-o", "json"]) == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert json.loads(told.err) == {
        "error": {
            "family": "conflict",
            "code": "room.word",
            "sentence": "No.",
            "hint": "Read.",
            "exit_code": 5,
            "findings": [],
        }
    }


def test_findings_are_listed_below_the_sentence(capsys: pytest.CaptureFixture[str]):
    error = InvalidConfig("config.invalid", "f.yaml has 2 problems.", hint="Correct them.")
    error.findings = (
        Finding(
            Severity.ERROR,
            "config.unknown_key",
            "f.yaml:1:1 prot",
            '"prot" is not a known key here.',
            "did you mean?",
        ),
        Finding(Severity.ERROR, "config.missing_key", "f.yaml:2:1 x", "Missing."),
    )
    assert run(app_that(error), ["do"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: f.yaml has 2 problems.",
        "  f.yaml:1:1 prot",
        '    "prot" is not a known key here. did you mean?',
        "  f.yaml:2:1 x",
        "    Missing.",
        "hint: Correct them.",
        "code: config.invalid",
    ]
    assert run(app_that(pickle.loads(pickle.dumps(error))), ["do", "-o", "json"]) == 2  # noqa: S301 -- our own bytes
    findings = json.loads(capsys.readouterr().err)["error"]["findings"]
    assert [each["code"] for each in findings] == ["config.unknown_key", "config.missing_key"]


def test_a_bug_is_called_one_and_debug_shows_where(capsys: pytest.CaptureFixture[str]):
    assert run(app_that(ZeroDivisionError("oh")), ["do"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        "error: This is a bug in prog: ZeroDivisionError: oh\nhint: Run the same command with --debug"
    )
    assert "Traceback" not in told
    assert run(app_that(ZeroDivisionError("oh")), ["do", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_error_out_of_a_task_group_is_told_as_itself(capsys: pytest.CaptureFixture[str]):
    lost = ExceptionGroup("group", [ZeroDivisionError(), ExceptionGroup("inner", [NotFound("a.b", "Gone.")])])
    assert run(app_that(lost), ["do"]) == 3
    assert capsys.readouterr().err == "error: Gone.\ncode: a.b\n"
    assert run(app_that(ExceptionGroup("group", [ZeroDivisionError("oh")])), ["do"]) == 1
    assert "ZeroDivisionError: oh" in capsys.readouterr().err


def test_what_the_system_refuses_is_no_bug(capsys: pytest.CaptureFixture[str]):
    assert run(app_that(OSError(28, "No space left on device", "/x")), ["do"]) == 1
    assert capsys.readouterr().err == "error: /x: No space left on device.\ncode: cli.system\n"


@pytest.mark.parametrize(
    ("raises", "returns", "code"),
    [
        (None, None, 0),
        (None, 0, 0),
        (None, 7, 7),
        (None, Exit.FAILED, 1),
        (KeyboardInterrupt(), None, 130),
        (click.Abort(), None, 130),
        (while_loading(), None, 130),
        (click.exceptions.Exit(9), None, 9),
        (click.UsageError("wrong"), None, 2),
        (click.ClickException("wrong"), None, 1),
    ],
)
def test_each_way_to_end_has_its_code(raises: BaseException | None, returns: int | None, code: int):
    assert run(app_that(raises, returns), ["do"]) == code


@pytest.mark.parametrize(
    ("raises", "args", "code"),
    [
        (NotFound("a.b", "No."), ["do"], 125),
        (ZeroDivisionError(), ["do"], 125),
        (None, ["do", "--cuont", "1"], 125),
        (None, ["do", "--count", "x"], 125),
        (KeyboardInterrupt(), ["do"], 130),
        (while_loading(), ["do"], 130),
        (click.exceptions.Exit(3), ["do"], 3),
        (None, ["do"], 42),
        (None, ["do", "--help"], 0),
    ],
)
def test_our_failure_before_a_users_program_ran_is_125(
    raises: BaseException | None, args: list[str], code: int
):
    assert run(app_that(raises, returns=42, users=True), args) == code


def test_a_pipe_nobody_reads_ends_the_command_quietly(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    reader, writer = os.pipe()
    os.close(reader)
    app = App("prog")

    @app.command("pour")
    def pour(out: Output) -> None:
        """Pour."""
        for _ in range(10_000):
            out.text("x" * 100)

    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert run(app, ["pour"]) == Exit.BROKEN_PIPE
    assert capfd.readouterr().err == ""
