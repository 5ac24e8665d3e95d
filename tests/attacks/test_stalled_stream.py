"""A stream whose peer vanishes while bytes are on their way ends by itself, in a network of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from neorion.keel.http import dialer

pytestmark = [
    pytest.mark.attack("stalled-stream"),
    pytest.mark.fault(56),
    pytest.mark.needs("ip", "nft", "root"),
]
ROOT = Path(__file__).parents[2]
# Shorter than the real limit, so that a test can wait for it, and longer than a hiccup of the machine.
QUICK_MS = 2_000


def stalled(ms: int, patience_s: float) -> list[str]:
    """The error and its seconds, or `standing`."""
    command = ["unshare", "--net", sys.executable, "-m", "tests.attacks.stalled", str(ms), str(patience_s)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=patience_s + 60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def test_a_stream_without_acknowledgements_ends() -> None:
    code, seconds = stalled(QUICK_MS, 30)
    assert code == "kube.command_lost"
    assert float(seconds) > 1


def test_without_the_limit_the_same_stream_stands() -> None:
    assert stalled(0, 8) == ["standing"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_real_limit_is_about_a_minute() -> None:
    code, seconds = stalled(dialer.UNHEARD_MS, 120)
    assert code == "kube.command_lost"
    assert 55 < float(seconds) < 100
