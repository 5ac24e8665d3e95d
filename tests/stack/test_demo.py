"""What a newcomer sees first is true, and leaves nothing behind."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from neorion.stack.demo import SHARDS
from tests.iris.processes import processes_in

pytestmark = pytest.mark.timeout(240)

# In this order, whatever else is told between them.
_STORY = (
    "it has no machines yet",
    "submitted ",
    "the autoscaler asks for 3 machines",
    "machine 1 is ready|machine 2 is ready|machine 3 is ready",
    f" of {SHARDS} shards are done",
    "FAULT: the power of machine . is cut",
    "the controller has noticed",
    "every shard's value is here: the mean loss is 0.4906",
    "all machines are given back",
    f"{SHARDS} results from {SHARDS}|{SHARDS} results from {SHARDS + 1}",
    r"first machine ready +\d+\.\d s",
    r"loss noticed +\d+\.\d s",
    # A machine that is loaded may finish the job before another one has booted.
    r"new machine in its place +(\d+\.\d s|not before the job had ended)",
    r"every result back +\d+\.\d s",
)


def test_the_demo_tells_a_whole_life_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # As after `make demo`: our programs are in a folder that the shell does not know.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    shown = subprocess.run(
        [sys.executable, "-m", "neorion", "demo"], capture_output=True, text=True, check=False
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    place = 0
    for words in _STORY:
        found = re.search(words, shown.stdout[place:])
        assert found, f"{words!r} is not in its place in:\n{shown.stdout}"
        place += found.end()
    assert "\x1b" not in shown.stdout
    first, *others = shown.stdout.partition("Try it")[2].splitlines()[1:]
    found = subprocess.run(
        ["sh", "-c", f"{first}; {others[0]} --help"], capture_output=True, text=True, check=False
    )
    assert found.stdout.startswith("Usage: iris cluster start")
    assert not list(tmp_path.iterdir())
    assert not processes_in(tmp_path)
