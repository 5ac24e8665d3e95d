import io
import os

import pytest

from neorion.keel.base import Invalid, Terminal
from neorion.keel.cli import Format, SharedOptions
from neorion.keel.cli.kit import Output, TerminalStream, confirm, extras, missing_packages, require_extra
from neorion.keel.cli.kit.progress import progress
from neorion.keel.clock import VirtualClock


def test_nobody_is_asked_where_nobody_sits():
    confirm("Delete?", yes=True)
    with pytest.raises(Invalid, match="Cannot ask") as caught:
        confirm("Delete?", yes=False)
    assert "--yes" in caught.value.hint


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_is_asked_on_the_terminal(monkeypatch: pytest.MonkeyPatch, answer: str, agreed: bool):  # noqa: FBT001 -- a table
    ours, theirs = os.openpty()
    os.write(ours, answer.encode())
    with open(theirs, closefd=False) as reads, open(theirs, "w", closefd=False) as writes:
        monkeypatch.setattr("sys.stdin", reads)
        monkeypatch.setattr("sys.stderr", writes)
        if agreed:
            confirm("Delete?", yes=False)
        else:
            with pytest.raises(Terminal, match="Nothing was changed"):
                confirm("Delete?", yes=False)
    shown = b""
    while b"Delete? [y/N]" not in shown:
        shown += os.read(ours, 1000)
    os.close(ours)
    os.close(theirs)


def test_extras_are_those_the_distribution_declares():
    assert "granian" in extras()["server"]
    assert "psycopg" in extras()["postgres"]
    assert missing_packages("server") == []
    require_extra("server")


def test_a_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch):
    optional = "neorion.keel.cli.kit.optional_extras"
    monkeypatch.setattr(f"{optional}.extras", lambda: {"server": ["click", "no-such-package"]})
    monkeypatch.setattr(f"{optional}._origin", dict)
    with pytest.raises(Terminal, match="no-such-package") as caught:
        require_extra("server")
    assert "click" not in caught.value.sentence
    assert caught.value.hint == "Install them: pip install 'neorion[server]'"


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def told(*, quiet: bool = False, tty: bool = False) -> tuple[Output, io.StringIO]:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return tty

    stream = Stream()
    screen = TerminalStream(stream, color=False, width=None)
    return Output(SharedOptions(Format.TABLE, quiet=quiet), screen, screen, {"TERM": "xterm"}), stream


def test_without_a_terminal_progress_is_a_few_dated_lines():
    time = Time()
    out, stream = told()
    with progress(out, "installing", VirtualClock(time), total=10) as work:
        for _ in range(10):
            time.now += 1.5
            work.advance(note="a\x1b[1m")
    assert stream.getvalue().splitlines() == [
        "2026-01-01T00:00:00.000Z installing: started",
        "2026-01-01T00:00:06.000Z installing: 4 of 10, a\\x1b[1m",
        "2026-01-01T00:00:12.000Z installing: 8 of 10, a\\x1b[1m",
        "2026-01-01T00:00:15.000Z installing: done after 15s",
    ]


def test_work_that_fails_says_so():
    out, stream = told()
    with pytest.raises(ValueError, match="oh"), progress(out, "installing", VirtualClock(Time())):
        raise ValueError("oh")
    assert stream.getvalue().endswith("installing: failed after 0s\n")


def test_quiet_shows_no_progress():
    out, stream = told(quiet=True)
    with progress(out, "installing", VirtualClock(Time())) as work:
        work.advance()
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_that_cleans_up_after_itself():
    out, stream = told(tty=True)
    with progress(out, "installing [bold]\x1b[2J", VirtualClock(Time()), total=2) as work:
        work.advance(note="one [red]\x1b[2J")
    shown = stream.getvalue()
    assert "installing [bold]\\x1b[2J" in shown
    assert "one [red]\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_who_waits_at_a_terminal_sees_what_for_until_there_is_something_to_show():
    out, stream = told(tty=True)
    with out.waiting("asking \x1b[2J"):
        assert stream.getvalue() == "asking \\x1b[2J"
    assert stream.getvalue() == "asking \\x1b[2J\r\x1b[K"


@pytest.mark.parametrize(("quiet", "tty"), [(True, True), (False, False)])
def test_nobody_else_sees_it(quiet: bool, tty: bool):  # noqa: FBT001 -- a table
    out, stream = told(quiet=quiet, tty=tty)
    with out.waiting("asking"):
        pass
    assert stream.getvalue() == ""
