"""The program that runs the tests: what is repeated, what is final, and what its last lines and exit code say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neorion.keel.sim.explore import HALF_VARIABLE
from tests.plugins.order import LONGEST
from tools.run_tests import (
    CLUSTERS,
    NEVER_REPEATED,
    ROOT,
    Results,
    closing_line,
    half_of_commit,
    kind_never_repeated,
    refusal,
)

CONFTEST = 'pytest_plugins = ["tests.plugins.limits", "tests.plugins.results"]\n'
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert 1 == 2\n"
# Fails once: then its mark is there.
FLAKY = """
from pathlib import Path
def test_flaky_{number}():
    mark = Path(__file__).with_suffix(".{number}")
    known = mark.exists()
    mark.touch()
    assert known, "the first time"
"""


class Checkout:
    """A folder with tests, and a run of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("tests/conftest.py", CONFTEST)
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str) -> tuple[int, list[str]]:
        """The exit code and the lines of a run of chosen tests."""
        return self.run_whole(*arguments, "tests")

    def run_whole(self, *arguments: str) -> tuple[int, list[str]]:
        code = "import sys; from pathlib import Path; import tools.run_tests as t; t.CALM_WAIT_S = 0;"
        code += "t.CLUSTER_WORKERS = 0;"
        code += f"sys.exit(t.main({[*arguments]!r}, Path({str(self.folder)!r})))"
        # The run that this test is a part of has chosen its own half of the seeds.
        kept = {name: value for name, value in os.environ.items() if name != HALF_VARIABLE}
        env = {**kept, "PYTHONPATH": str(ROOT), "PYTEST_XDIST_AUTO_NUM_WORKERS": "0"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).strip().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_what_passes_the_second_time_is_listed_last_and_written_down(checkout: Checkout):
    checkout.write("tests/test_a.py", PASSES + "".join(FLAKY.format(number=n) for n in range(5)))
    code, lines = checkout.run("-n", "2", "--dist", "loadfile")
    assert code == 0
    assert " 6 passed in " in lines[-2]
    assert lines[-1].startswith("FLAKY 5: tests/test_a.py::test_flaky_")
    written = (checkout.folder / "build/tests/flaky.jsonl").read_text().splitlines()
    assert len(written) == 5
    assert all(json.loads(line)["error"].endswith("the first time") for line in written)


@pytest.mark.parametrize("code", [0, 1])
def test_the_checks_run_beside_the_clusters_and_count(checkout: Checkout, code: int):
    checkout.write("tests/test_a.py", PASSES)
    # Otherwise it would never end.
    waits = "from pathlib import Path\ndef test_waits():\n    while not Path('checks').exists(): pass\n"
    for folder in CLUSTERS:
        checkout.write(f"{folder}/test_{folder.replace('/', '_')}.py", waits)
    checkout.write("Makefile", f"static:\n\t@touch checks; echo checked; exit {code}\n")
    result, lines = checkout.run_whole()
    assert result == code
    assert lines.index("checked") > next(
        i for i, line in enumerate(lines) if f" {len(CLUSTERS)} passed in " in line
    )
    assert f" {len(CLUSTERS) + 1} passed in " in lines[-1]
    assert ("tests: the checks failed (make static)." in lines) == bool(code)


def test_six_are_no_accident(checkout: Checkout):
    checkout.write("tests/test_a.py", "".join(FLAKY.format(number=n) for n in range(6)))
    code, lines = checkout.run()
    assert code == 1
    assert "tests: 6 tests failed. At most 5 are run again." in lines
    assert " 6 failed in " in lines[-1]


def test_what_fails_again_is_red(checkout: Checkout):
    checkout.write("tests/test_a.py", FAILS + FLAKY.format(number=1))
    code, lines = checkout.run()
    assert code == 1
    assert " 2 failed in " in lines[-1]
    assert not (checkout.folder / "build/tests/flaky.jsonl").exists()


def test_a_law_is_not_run_again(checkout: Checkout):
    checkout.write("tests/iris/decide/test_laws.py", FLAKY.format(number=1))
    code, lines = checkout.run()
    assert code == 1
    final = "tests/iris/decide/test_laws.py::test_flaky_1 is final: laws of decide are never run again."
    assert f"tests: {final}" in lines


def test_a_fixture_that_fails_once_is_run_again(checkout: Checkout):
    body = "import pytest\n@pytest.fixture\ndef part():\n" + FLAKY.format(number=1).partition(":\n")[2]
    body = body.replace("\nfrom pathlib import Path", "")
    checkout.write("tests/test_a.py", f"from pathlib import Path\n{body}\ndef test_a(part): pass\n")
    code, lines = checkout.run()
    assert code == 0
    assert " 1 passed in " in lines[-2]
    assert lines[-1] == "FLAKY 1: tests/test_a.py::test_a"


@pytest.mark.parametrize("text", ["import nothing_of_this_name\n", "import os\ndef test_a(): os._exit(0)\n"])
def test_a_run_that_pytest_did_not_finish_is_red(checkout: Checkout, text: str):
    checkout.write("tests/test_a.py", text)
    assert checkout.run()[0] == 1


def test_what_compiled_programs_are_missing_for_is_named_with_the_command_that_brings_them(
    checkout: Checkout,
):
    text = "import pytest\ndef test_a(): pytest.skip('the programs of clusters are not built')\n"
    checkout.write("tests/test_a.py", PASSES + text)
    code, lines = checkout.run()
    assert code == 0
    assert " 1 passed, 1 skipped in " in lines[-2]
    assert lines[-1] == "LEFT OUT 1: these tests need compiled programs. Run: make programs"


def test_the_longest_file_begins_first_though_it_has_the_fewest_tests(checkout: Checkout):
    plan = "from tests.plugins import order\norder.LONGEST = ('tests/test_long.py',)\n"
    checkout.write("tests/conftest.py", plan + CONFTEST.replace("]", ', "tests.plugins.order"]'))
    checkout.write("tests/test_long.py", PASSES)
    checkout.write("tests/test_many.py", PASSES + PASSES.replace("passes", "also_passes"))
    _, lines = checkout.run("-v", "-n", "1", "--dist", "loadfile")
    done = [line.split()[-1] for line in lines if " PASSED tests/" in line]
    assert [test.partition("::")[0] for test in done] == ["tests/test_long.py", *["tests/test_many.py"] * 2]


def test_the_longest_files_are_there():
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []


def test_the_files_in_which_a_run_spends_its_time_are_written_down(checkout: Checkout):
    for name, seconds in (("quick", 0), ("slow", 0.5)):
        wait = f"import threading\ndef test_a(): threading.Event().wait({seconds})\n"
        checkout.write(f"tests/test_{name}.py", wait)
    checkout.run()
    written = json.loads((checkout.folder / "build/tests/chosen.json").read_text())["seconds"]
    assert [*written] == ["tests/test_slow.py", "tests/test_quick.py"]
    assert written["tests/test_slow.py"] >= 0.5


def test_a_test_runs_again_under_the_same_seed_with_a_longer_limit(checkout: Checkout):
    text = """
import random, threading
from pathlib import Path
import pytest

@pytest.mark.timeout(1)
def test_slow():
    file = Path(__file__).with_suffix(".numbers")
    with file.open("a") as numbers:
        numbers.write(f"{random.random()}\\n")
    first = len(file.read_text().splitlines()) == 1
    threading.Event().wait(60 if first else 1.5)
"""
    checkout.write("tests/test_a.py", text)
    code, lines = checkout.run()
    assert code == 0, lines
    assert lines[-1] == "FLAKY 1: tests/test_a.py::test_slow"
    numbers = (checkout.folder / "tests/test_a.numbers").read_text().splitlines()
    assert len(numbers) == 2
    assert len(set(numbers)) == 1
    (written,) = (checkout.folder / "build/tests/flaky.jsonl").read_text().splitlines()
    assert json.loads(written)["error"].startswith("TIMEOUT: the limit of 1 s struck.")


@pytest.mark.parametrize(
    ("test", "kind"),
    [
        ("tests/navarch/decide/test_repair.py::test_a", "laws of decide"),
        ("tests/contracts/test_kube_memory.py::TestMemory::test_a", "contracts in memory"),
        ("tests/contracts/test_platform.py::test_a[memory]", "contracts in memory"),
        ("tests/contracts/test_platform.py::test_a[local]", ""),
        ("tests/sim/test_planted.py::test_a", "planted mistakes"),
        ("tests/keel/store/test_crash.py::test_a[3]", "crashes of the store"),
        ("tests/iris/app/test_power_cut.py::test_a", "crashes of the store"),
        ("tests/drydock/test_crash.py::test_a", ""),
        ("tests/kube/test_devservers_guards.py::test_a", "guards and rights"),
        ("tests/kube/test_navarch_manifests.py::test_the_rights_are_no_more_than_that", "guards and rights"),
        ("tests/iris/runtimes/test_lives.py::test_a_killed_guardian_takes_everything_with_it", ""),
        ("tests/iris/serve/test_authorization.py::test_a", "guards and rights"),
        ("tests/node/test_devctl.py::test_files_are_copied_both_ways", ""),
    ],
)
def test_kinds_that_are_final(test: str, kind: str):
    assert kind_never_repeated(test) == kind
    assert bool(refusal([test])) == bool(kind)


def test_every_kind_still_has_its_files():
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    for kind in NEVER_REPEATED:
        assert kind in {kind_never_repeated(f"{file}::test_a[memory]") for file in files}


def test_stages_are_counted_together():
    stages = [Results(0, {"passed": 3}), Results(1, {"passed": 2, "failed": 1, "skipped": 4})]
    assert " 1 failed, 5 passed, 4 skipped in 2.00s " in closing_line(stages, [], 2)
    assert " 6 passed, 4 skipped in 2.00s " in closing_line(stages, [{"phase": "call"}], 2)


def test_commits_take_turns_at_the_seeds():
    assert {commit: half_of_commit(commit) for commit in ("22633e98", "22633e99", "")} == {
        "22633e98": "even",
        "22633e99": "odd",
        "": "even",
    }


def test_the_tests_of_a_run_hear_which_half_it_is(checkout: Checkout):
    checkout.write(
        "tests/test_a.py", 'import os\ndef test_a(): assert os.environ["NEORION_SEEDS"] == "even"\n'
    )
    assert checkout.run()[0] == 0
