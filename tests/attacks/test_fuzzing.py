"""Hostile inputs to everything that parses what others write: each is read, or refused with a type, within a second."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.fuzz_targets import TARGETS

ROOT = Path(__file__).parents[2]
# All targets take about forty seconds of processor time together.
QUICK = 20_000
# Ten seeds for each target in `make soak`.
SEEDS, INPUTS = range(10, 20), 100_000


def fuzz(target: str, seed: int, count: int, timeout_s: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.attacks.fuzz", target, str(seed), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["inputs"] == count
    assert report["slowest_s"] < 1, report["slowest"]
    # Some are read, most are refused, and none is an error that was not foreseen.
    assert report["answers"].keys() == {"read", "refused"}
    return report


@pytest.mark.attack("hostile-rpc", "hostile-bytes")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("target", TARGETS)
def test_hostile_inputs_are_read_or_refused(target: str) -> None:
    fuzz(target, 1, QUICK, 240)


@pytest.mark.attack("hostile-rpc", "hostile-bytes")
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_million_hostile_inputs_are_read_or_refused(target: str, seed: int) -> None:
    fuzz(target, seed, INPUTS, 3000)


CRASH = """
import sys
from tests.attacks import fuzz, fuzz_files
from neorion.keel.kube.client import kubeconfig
kubeconfig.exceeded_bound = lambda text: ""
fuzz_files.KUBECONFIGS[:] = [b"clusters: " + b"[" * 100_000]
fuzz.main("kubeconfig", 1, 1)
"""


def test_a_parser_that_overflows_its_stack_is_found() -> None:
    """The control: without the bound on depth the process ends, and the test of this target with it."""
    command = [sys.executable, "-c", CRASH]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert done.returncode < 0
