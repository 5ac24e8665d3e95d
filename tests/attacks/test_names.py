"""Name servers that misbehave: a typed error in bounded time, or the answer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.fault(57),
    pytest.mark.needs("ip", "root"),
]
ROOT = Path(__file__).parents[2]


def test_a_name_server_that_misbehaves_costs_a_typed_error_in_bounded_time() -> None:
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.attacks.names"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=85, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, tuple[str, float]] = json.loads(done.stdout)
    assert {host: answer for host, (answer, _) in found.items()} == {
        "good": "a",
        "missing": "kube.unreachable",
        "slow": "a",
        "silent": "kube.unreachable",
        "flip": "a",
    }
    # A silent one is waited for on each of a few tries.
    assert max(seconds for _, seconds in found.values()) < 30
