"""What is done apart comes back, and leaves nothing behind."""

import os
import signal
import sys

import pytest

from neorion.keel.base import Duration, Retry, Terminal
from neorion.keel.run import run_in_fork


def test_what_it_returns_comes_back_and_what_it_loaded_does_not() -> None:
    def load() -> tuple[int, bool]:
        import this  # noqa: PLC0415 -- loaded there and only there

        del this
        return os.getpid(), "this" in sys.modules

    sys.modules.pop("this", None)
    pid, loaded = run_in_fork(load)
    assert loaded
    assert pid != os.getpid()
    assert "this" not in sys.modules
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_an_error_comes_back_as_it_was() -> None:
    error = Retry("a.b", "Not now.", hint="Later.", after=Duration.of(seconds=3))

    def fail() -> None:
        raise error

    with pytest.raises(Retry) as caught:
        run_in_fork(fail)
    assert caught.value is not error
    assert vars(caught.value) == vars(error)


def test_one_that_dies_or_has_a_bug_is_told_of(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Terminal, match="without an answer"):
        run_in_fork(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(Terminal, match="without an answer"):
        run_in_fork(lambda: 1 // 0)
    assert "ZeroDivisionError" in capfd.readouterr().err
