"""One request must not end a server: messages nested so deeply that a parser overflows its stack."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neorion.keel.base import Invalid
from neorion.keel.rpc.codec import JSON_DEPTH_MAX, check_depth, json_depth

ROOT = Path(__file__).parents[2]
# Every method of iris and navarch is called with the same body, in a process that may die of it.
CALL_ALL = """
import asyncio, resource, sys
from tests.attacks import rpc_fuzz
from neorion.keel.rpc import codec
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if sys.argv[1] == "unguarded":
    codec.check_depth = lambda body: None
app, methods = rpc_fuzz.application()
for method in methods:
    print(asyncio.run(rpc_fuzz.send(app, method, sys.argv[2], rpc_fuzz.deep(sys.argv[2]))))
"""


def call_all(form: str, guard: str = "guarded") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CALL_ALL, guard, form]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


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
