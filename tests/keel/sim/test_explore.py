import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from neorion.keel.base import Finding, Invalid, Severity, Terminal
from neorion.keel.sim import World, explore, half_of, seeds, simulate
from neorion.keel.sim.explore import HALF_VARIABLE, SEED_VARIABLE

TEST_FILE = """
import os, pytest
from neorion.keel.sim import World, seeds

@pytest.fixture
def five() -> int:
    return 5

@seeds(50)
@pytest.mark.parametrize("shift", [0, 1])
async def test_small_numbers_only(world: World, shift: int, five: int) -> None:
    assert five == 5
    drawn = world.rng.randrange(0, 20)
    world.note(f"drew {drawn}")
    assert drawn < 18 + shift * 10

@seeds(3)
async def test_sums(world: World) -> None:
    assert world.seed < 3 or os.environ["NEORION_SEED"]
"""


async def lost_update(world: World) -> None:
    """Two tasks read, wait and write back."""
    value = 0

    async def add() -> None:
        nonlocal value
        for _ in range(world.rng.randrange(0, 3)):
            await anyio.lowlevel.checkpoint()
        read = value
        await anyio.lowlevel.checkpoint()
        value = read + 1

    async with anyio.create_task_group() as group:
        group.start_soon(add)
        group.start_soon(add)
    assert value == 2, f"{value} of 2 updates"


def test_exploring_finds_failures_the_smallest_seed_first_and_they_replay():
    report = explore(lost_update, range(200))
    failure = report.first_failure
    assert failure is not None
    assert failure.seed == min(outcome.seed for outcome in report.failures)
    assert len(report.failures) == 10
    assert report.runs < 200
    again = simulate(lost_update, failure.seed)
    assert (again.digest, str(again.error)) == (failure.digest, str(failure.error))
    assert report.distinct > 5


def test_a_law_is_checked_after_every_step_and_stops_the_run_where_it_breaks():
    async def scenario(world: World) -> None:
        count = 0

        def violations() -> list[Finding]:
            return (
                [] if count < 5 else [Finding(Severity.ERROR, "test.many", "count", f"{count} is too many")]
            )

        world.check(violations)
        world.check(list, every=3)
        for _ in range(10):
            await world.sleep(1)
            world.note("counting")
            count += 1

    outcome = simulate(scenario, 4)
    assert isinstance(outcome.error, Terminal)
    assert outcome.error.code == "sim.violated"
    assert "test.many count: 5 is too many" in str(outcome.error)
    assert outcome.elapsed.seconds == 5
    assert outcome.tail[-1] == "5.000000 scenario: counting"
    with pytest.raises(Terminal) as caught:
        outcome.check()
    told = "\n".join([str(caught.value), *caught.value.__notes__])
    for part in (
        "seed 4 failed at step",
        "5.000000 s",
        outcome.digest,
        "counting",
        "Replay: simulate(scenario, 4).",
    ):
        assert part in told


def test_a_test_of_seeds_runs_under_pytest_names_the_seed_and_replays_it(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(TEST_FILE)

    def run(**env: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
            cwd=tmp_path,
            env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env},
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    told = run()
    assert "1 failed, 2 passed" in told
    (line,) = (line for line in told.splitlines() if "Replay: " in line and SEED_VARIABLE in line)
    assert "test_it.py::test_small_numbers_only[0]" in line
    seed = line.partition(f"{SEED_VARIABLE}=")[2].split()[0]
    assert seed != "0"
    assert f"seed {seed} failed" in told
    assert f"seed {seed} failed" in run(**{SEED_VARIABLE: seed})
    assert "3 passed" in run(**{SEED_VARIABLE: "0"})


@pytest.mark.parametrize(
    ("half", "chosen"),
    [("even", [range(0, 10, 2), range(12, 21, 2)]), ("odd", [range(1, 10, 2), range(11, 21, 2)])],
)
def test_a_run_may_take_half_of_many_seeds(half: str, chosen: list[range], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(HALF_VARIABLE, half)
    assert [half_of(range(10)), half_of(range(11, 21))] == chosen
    # Of a few, each is worth its time.
    assert half_of(range(9)) == range(9)
    ran = list[int]()

    @seeds(12)
    async def scenario(world: World) -> None:
        ran.append(world.seed)

    scenario()
    assert set(ran) == set(half_of(range(12)))


def test_without_a_half_all_seeds_are_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(HALF_VARIABLE, raising=False)
    assert half_of(range(50)) == range(50)


def test_an_unknown_half_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(HALF_VARIABLE, "third")
    with pytest.raises(Invalid, match="third"):
        half_of(range(50))


def test_a_seed_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SEED_VARIABLE, "seven")
    with pytest.raises(Invalid, match="seven"):
        seeds(3)(lost_update)()


def test_a_scenario_that_does_not_repeat_is_refused():
    runs = 0

    @seeds(3)
    async def scenario(world: World) -> None:
        nonlocal runs
        runs += 1
        world.note(f"run {runs}")

    with pytest.raises(Terminal) as caught:
        scenario()
    assert caught.value.code == "sim.unrepeatable"
    assert "run 1" in str(caught.value)
