"""Runs every test this machine can run: those without compiled programs first, then those on real clusters.

A few failures are run once more, alone, on a machine that has become calm. What passes then is listed as FLAKY, and the
run is green. Usage: python -m tools.run_tests [pytest arguments]
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event
from typing import Any

from neorion.keel.clock import SystemClock
from neorion.keel.sim.explore import HALF_VARIABLE
from tools.leftovers import remove_leftovers

ROOT = Path(__file__).resolve().parent.parent
CLUSTERS = (
    "tests/conformance/kube",
    "tests/conformance/node",
    "tests/drydock",
    "tests/engines",
    "tests/kube",
    "tests/node",
)
# Tests of clusters mostly wait. Workers for each core.
CLUSTER_WORKERS = 2
# More failures than these are no accident.
REPEATED_MAX = 5
LIMIT_FACTOR = 3
CALM_WAIT_S = 120
# At the lowest priority: they run beside the clusters, whose time limits are real.
CHECKS = ("nice", "-n", "19", "make", "--no-print-directory", "static")
# pytest's own: all passed, some failed, no test matched.
PASSED, FAILED, NONE_MATCHED = 0, 1, 5
# What these find once is found: they depend on no machine, or a rare failure is what they look for.
NEVER_REPEATED = {
    "laws of decide": ("tests/*/decide/*",),
    "contracts in memory": (
        "tests/contracts/test_kube_memory.py::*",
        "tests/contracts/*[[]*memory*]",
        "tests/contracts/*[[]*inline*]",
    ),
    "planted mistakes": ("tests/*planted.py::*", "tests/*_planted*"),
    "crashes of the store": ("tests/keel/store/test_crash.py::*", "tests/*/test_power_cut.py::*"),
    "guards and rights": (
        "tests/*_guards.py::*",
        "tests/*_guard_*",
        "tests/*/test_authorization.py::*",
        "tests/*_rights_*",
    ),
}
Failure = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    """What one run of pytest came to."""

    exit: int
    counts: dict[str, int] = field(default_factory=dict[str, int])
    left_out: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])
    # Of each file, the longest first.
    seconds: dict[str, float] = field(default_factory=dict[str, float])


def kind_never_repeated(test: str) -> str:
    """The kind that forbids running the test again, or nothing."""
    kinds = (
        kind for kind, patterns in NEVER_REPEATED.items() if any(fnmatchcase(test, one) for one in patterns)
    )
    return next(kinds, "")


def refusal(failed: list[str]) -> str:
    """Why these failures are final, or nothing if they may be run again."""
    if len(failed) > REPEATED_MAX:
        return f"{len(failed)} tests failed. At most {REPEATED_MAX} are run again."
    final = {test: kind for test in failed if (kind := kind_never_repeated(test))}
    return "\n".join(f"{test} is final: {kind} are never run again." for test, kind in final.items())


def closing_line(stages: list[Results], flaky: list[Failure], seconds: float) -> str:
    """As pytest's own, for all stages together. A test that passed when it was run again has passed."""
    names = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")
    total = {name: sum(stage.counts.get(name, 0) for stage in stages) for name in names}
    if flaky:
        # One that could not be cleared away after it had passed is counted as passed already.
        total["passed"] += sum(failure["phase"] != "teardown" for failure in flaky)
        total["failed"] = total["error"] = 0
    if total["error"] > 1:
        total["errors"] = total.pop("error")
    words = [f"{count} {name}" for name, count in total.items() if count] or ["no tests ran"]
    return f" {', '.join(words)} in {seconds:.2f}s ".center(100, "=")


class Runner:
    """One run of all stages under one seed. Results are kept in `folder`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._seed = int.from_bytes(os.urandom(4))
        self.stages: list[Results] = []
        self.flaky: list[Failure] = []

    def stage(self, name: str, *arguments: str) -> None:
        self.stages.append(self._pytest(name, "-m", "not slow", "--durations=40", *arguments))

    @property
    def failures(self) -> dict[str, Failure]:
        """The first failure of each test that failed."""
        listed = [failure for stage in self.stages for failure in stage.failures]
        return {failure["test"]: failure for failure in reversed(listed)}

    @property
    def broken(self) -> bool:
        """Whether pytest itself failed: on a file that cannot be read, or because it was interrupted."""
        exits = [stage.exit for stage in self.stages]
        return not {PASSED, FAILED, NONE_MATCHED}.issuperset(exits) or set(exits) == {NONE_MATCHED}

    def repeat(self) -> bool:
        """Runs failed tests once more. Whether all passed; if so, they are `flaky` and written down."""
        failures = self.failures
        wait_until_calm()
        known = {"commit": self._commit(), "seed": self._seed, "load_again": _load()}
        again = self._pytest("again", "-n", "0", f"--limit-factor={LIMIT_FACTOR}", *failures)
        if again.exit != PASSED or again.counts.get("passed") != len(failures):
            return False
        self.flaky = [{**failure, **known} for failure in failures.values()]
        with (self._folder / "flaky.jsonl").open("a") as file:
            file.writelines(f"{json.dumps(one)}\n" for one in self.flaky)
        return True

    def _pytest(self, name: str, *arguments: str) -> Results:
        """A run that is killed leaves no results, and has failed."""
        file = self._folder / f"{name}.json"
        file.unlink(missing_ok=True)
        settings = [f"--results={file}", f"--randomly-seed={self._seed}"]
        command = [sys.executable, "-m", "pytest", *settings, *arguments]
        env = {HALF_VARIABLE: half_of_commit(self._commit()), **os.environ}
        code = subprocess.run(command, cwd=self._root, env=env, check=False).returncode
        if not file.exists():
            return Results(exit=code if code not in {PASSED, FAILED} else -1)
        content: dict[str, Any] = json.loads(file.read_text())
        content["exit"] = code
        return Results(**content)

    def _commit(self) -> str:
        command = ["git", "rev-parse", "--short", "HEAD"]
        return subprocess.run(
            command, cwd=self._root, capture_output=True, text=True, check=False
        ).stdout.strip()


def half_of_commit(commit: str) -> str:
    """Which half of the seeds of simulations this commit runs under. Later commits try the other."""
    return "odd" if int(commit or "0", 16) % 2 else "even"


def wait_until_calm() -> None:
    """Returns when fewer processes are ready to run than there are cores, or after two minutes."""
    cores = os.cpu_count() or 1
    for _ in range(CALM_WAIT_S):
        if _load() < cores:
            return
        Event().wait(1)


def _load() -> float:
    return round(os.getloadavg()[0], 1)


def conclude(runner: Runner) -> bool:
    """Whether the run is green, after what failed was run again where that is allowed."""
    if runner.broken:
        _say("pytest did not finish; see above.")
        return False
    if not runner.failures:
        return True
    if reason := refusal(list(runner.failures)):
        _say(reason)
        return False
    _say(f"running {len(runner.failures)} failed tests once more, alone, when the machine is calm.")
    return runner.repeat()


def _say(text: str) -> None:
    for line in text.splitlines():
        print(f"tests: {line}", flush=True)


class Checks:
    """The checks that are no tests, running beside tests."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._log = folder / "checks.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(CHECKS, cwd=root, stdout=log, stderr=subprocess.STDOUT)

    def passed(self) -> bool:
        """Waits until they are done, and prints their output."""
        code = self._process.wait()
        print(self._log.read_text(errors="replace"), end="", flush=True)
        return code == 0


def run_stages(runner: Runner, root: Path, arguments: list[str]) -> Checks | None:
    """Runs all tests, or those that were chosen. Who chooses tests runs the checks when the change is done."""
    if any((root / one.partition("::")[0]).exists() for one in arguments):
        runner.stage("chosen", *arguments)
        return None
    _say("units and simulations. They need no compiled programs.")
    # Each worker gets files that follow each other, so that most fixtures of a file are made once.
    spread = ("-n", "auto", "--dist", "worksteal", *arguments)
    runner.stage("units", *(f"--ignore={one}" for one in CLUSTERS), *spread)
    _say("real clusters.")
    checks = None if arguments else Checks(root, root / "build" / "tests")
    workers = str(CLUSTER_WORKERS * (os.cpu_count() or 1))
    # A cluster that a file breaks or fits out is made once, not once for each worker.
    runner.stage("clusters", "--dist", "loadfile", *CLUSTERS, "-n", workers, *arguments)
    return checks


def main(arguments: list[str], root: Path = ROOT) -> int:
    clock = SystemClock()
    began = clock.monotonic()
    for one in remove_leftovers():
        _say(f"removed what a killed run left: {one}")
    runner = Runner(root, root / "build" / "tests")
    checks = run_stages(runner, root, arguments)
    green = conclude(runner)
    if checks is not None and not checks.passed():
        _say("the checks failed (make static).")
        green = False
    print(closing_line(runner.stages, runner.flaky, clock.monotonic() - began))
    if left_out := sum(stage.left_out for stage in runner.stages):
        print(f"LEFT OUT {left_out}: these tests need compiled programs. Run: make programs")
    if runner.flaky:
        print(f"FLAKY {len(runner.flaky)}: {', '.join(one['test'] for one in runner.flaky)}")
    return 0 if green else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
