"""Ctrl-C in the first moments, while a command still loads what it needs."""

import signal
import subprocess
import sys

import pytest

# Presses Ctrl-C when a module is looked for, which no clock can hit.
PRESSED_AT = """
import importlib.abc, os, signal, sys
class Finger(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finger())
signal.signal(signal.SIGINT, signal.{before})
from neorion.programs import devctl
devctl()
"""


def pressed_at(module: str, before: str = "default_int_handler") -> "subprocess.CompletedProcess[str]":
    # The name of the module is also the command, which there is not.
    return subprocess.run(
        [sys.executable, "-c", PRESSED_AT.format(before=before), module],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("module", ["neorion.devservers.cli", "click", "click.core", "neorion.keel.cli.main"])
def test_who_changes_their_mind_at_once_sees_no_traceback(module: str):
    done = pressed_at(module)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_it_is_told_as_an_interruption_once_the_command_runs():
    done = pressed_at("neorion.keel.cli.kit.errors")
    assert (done.returncode, done.stderr) == (130, "")


def test_who_started_it_deaf_to_ctrl_c_finds_it_so():
    done = pressed_at("click", before="SIG_IGN")
    assert done.returncode == 2
    assert "cli.usage" in done.stderr
