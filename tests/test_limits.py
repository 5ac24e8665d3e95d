"""A time limit that strikes is told as TIMEOUT, whatever the test did with it, and every file has the limit it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONFTEST = 'pytest_plugins = ["tests.plugins.limits"]\n'
HEAD = """
import asyncio, threading
import pytest
pytestmark = pytest.mark.timeout(0.5)
wait = threading.Event().wait
"""
STRUCK = {
    "in the test": "def test_a(): wait(20)",
    "in a task that no one awaits": """
async def work(): wait(20)
async def main():
    task = asyncio.get_running_loop().create_task(work())
    await asyncio.sleep(0.01)
    assert False, "a part was dead"
def test_a(): asyncio.run(main())
""",
    "where everything is caught": """
def test_a():
    try:
        wait(20)
    except BaseException:
        pass
""",
    "in a fixture": """
@pytest.fixture
def part(): wait(20)
def test_a(part): pass
""",
    "in a simulation": """
from neorion.keel.sim import seeds
@seeds(2)
async def test_a(world):
    async def work(): wait(20)
    world.loop.create_task(work())
    await world.sleep(1)
    assert False, "a part was dead"
""",
}


def run(folder: Path, text: str, *arguments: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(HEAD + text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra\nfilterwarnings = error\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_a_struck_limit_is_told_as_such_wherever_it_struck(tmp_path: Path):
    tests = {
        place: text.replace("test_a(", f"test_{place.replace(' ', '_')}(") for place, text in STRUCK.items()
    }
    found = run(tmp_path, "\n".join(tests.values()))
    assert "two different runs" not in found
    for place in tests:
        outcome = "ERROR" if place == "in a fixture" else "FAILED"
        told = f"{outcome} test_it.py::test_{place.replace(' ', '_')} - TIMEOUT: the limit of 0.5 s struck."
        assert [line for line in found.splitlines() if line.startswith(told)], found


def test_a_failure_before_the_limit_is_no_timeout(tmp_path: Path):
    found = run(tmp_path, "def test_a(): assert 1 == 2")
    assert "TIMEOUT" not in found
    assert "FAILED test_it.py::test_a - assert 1 == 2" in found


def test_limits_are_multiplied_when_asked(tmp_path: Path):
    assert "1 passed" in run(tmp_path, "def test_a(): wait(1)", "--limit-factor=20")


def test_every_simulation_may_take_ten_minutes():
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "tests/sim", "-p", __name__]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    limits = [float(line.split()[1]) for line in found.splitlines() if line.startswith("limit ")]
    assert len(limits) > 50
    assert min(limits) >= 600


def pytest_collection_finish(session: pytest.Session) -> None:
    """This file as a plugin: prints the limit of every test."""
    for item in session.items:
        mark = item.get_closest_marker("timeout")
        print("limit", mark.args[0] if mark else 0)  # noqa: T201 -- read by the test above


def test_cpu_time_is_limited_whatever_else_the_machine_does(tmp_path: Path):
    text = """
import time
def use(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
@pytest.mark.timeout(60)
@pytest.mark.cpu(0.2)
def test_more(): use(0.4)
@pytest.mark.timeout(60)
@pytest.mark.cpu(0.2)
def test_waiting(): wait(0.5)
"""
    output = run(tmp_path, text)
    assert "1 failed, 1 passed" in output
    assert "s of CPU time, more than 0.2 s." in output
