"""One request must not end a server: messages nested so deeply that a parser overflows its stack."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neorion.keel.base import Invalid
from neorion.keel.rpc.codec import JSON_DEPTH_MAX, check_depth, json_depth

HERE = Path(__file__).parent
# Every method of iris and navarch is called with the same body, in a process that may die of it.
CALL_ALL = """
import asyncio, resource, sys
sys.path.insert(0, sys.argv[1])
import rpc_fuzz
from neorion.keel.rpc import codec
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if sys.argv[2] == "unguarded":
    codec.check_depth = lambda body: None
app, methods = rpc_fuzz.application()
for method in methods:
    print(asyncio.run(rpc_fuzz.send(app, method, sys.argv[3], rpc_fuzz.deep(sys.argv[3]))))
"""


def call_all(form: str, guard: str = "guarded") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CALL_ALL, HERE, guard, form]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.attack("nested-message")
@pytest.mark.parametrize("form", ["json", "proto"])
def test_a_deeply_nested_message_is_refused_by_every_method(form: str) -> None:
    done = call_all(form)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 40
    assert set(done.stdout.split()) == {"refused"}


@pytest.mark.attack("nested-message")
def test_without_the_bound_the_same_request_ends_the_process() -> None:
    assert call_all("json", "unguarded").returncode == -signal.SIGSEGV


def fuzz(seed: int, count: int, timeout_s: float) -> dict[str, Any]:
    command = [sys.executable, HERE / "rpc_fuzz.py", str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["inputs"] == count
    return report


def check(report: dict[str, Any]) -> None:
    assert report["slowest_s"] < 1
    # Some reach a handler, most are refused, and none is an error that nobody foresaw.
    assert report["answers"].keys() == {"read", "refused"}


@pytest.mark.attack("hostile-rpc")
@pytest.mark.timeout(300)
def test_20_000_hostile_requests_are_read_or_refused() -> None:
    check(fuzz(1, 20_000, 240))


@pytest.mark.attack("hostile-rpc")
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_million_hostile_requests_are_read_or_refused(seed: int) -> None:
    check(fuzz(seed, 100_000, 3000))


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        (b"", 0),
        (b"[]", 1),
        (b'[{"a": []}, []]', 3),
        (b'"[[[["', 0),
        (rb'["\"[[", []]', 2),
        (rb'["\\", []]', 2),
        (b'["[[[', 1),
        (b'["\\', 1),
        (b"]]]][[[[", 0),  # a parser stops at the first
        (b"[" * 500, 500),
        (b'{"a":[' * 500, 1000),
    ],
)
def test_the_depth_is_what_a_parser_can_reach(body: bytes, depth: int) -> None:
    assert json_depth(body) == depth


def test_the_bound_itself_is_allowed() -> None:
    check_depth(b"[" * JSON_DEPTH_MAX)
    check_depth(b"[]," * 100_000)
    with pytest.raises(Invalid):
        check_depth(b"[" * (JSON_DEPTH_MAX + 1))
