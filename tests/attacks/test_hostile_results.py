"""Results that a task wrote by hand: each is a value, the task's exception, or an error with a type."""

import pickle
from pathlib import Path

import pytest

from neorion.iris.adapters.runtimes.process.result_file import read_head
from neorion.iris.client.result import failure_of, load
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.result_format import HEAD, MAGIC
from neorion.keel.base import Error, Invalid

pytestmark = [pytest.mark.anyio, pytest.mark.attack("hostile-result")]


def result(status: int, value: object, text: bytes = b"") -> bytes:
    body = pickle.dumps(value)
    return HEAD.pack(MAGIC, status, len(text), len(body)) + text + body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (result(7, 1), "iris.result"),
        (result(255, ValueError("x")), "iris.result"),
        (result(0, 1)[:-1], "iris.result"),
        (result(0, 1) + b"x", "iris.result"),
        (b"", "iris.result"),
        (result(1, "not an exception"), "iris.unreadable"),
        (result(1, ValueError, b"traceback"), "iris.unreadable"),
        (HEAD.pack(MAGIC, 0, 0, 3) + b"abc", "iris.unreadable"),
    ],
)
def test_a_malformed_result_is_an_error_with_a_type(body: bytes, code: str) -> None:
    with pytest.raises(Error) as refused:
        load(body)
    assert refused.value.code == code
    assert refused.value.hint


def test_well_formed_results_are_read() -> None:
    assert load(result(0, [1])) == [1]
    with pytest.raises(ZeroDivisionError):
        load(result(1, ZeroDivisionError("x"), b"traceback"))


async def test_an_exit_without_a_traceback_is_a_failed_job() -> None:
    async def fetch(_digest: str) -> bytes:
        return result(1, SystemExit(3))

    ended = pb.Task(state="failed", ending=pb.Ending(cause="exit_code", code=3, result="digest"))
    failed = await failure_of(pb.Job(name="/ann/job"), ended, b"", fetch)
    assert "ended with exit code 3" in str(failed)


@pytest.mark.parametrize("body", [result(7, 1), result(255, 1), b"IRISRES1"])
def test_the_fork_server_refuses_a_head_of_a_task(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "result").write_bytes(body)
    with pytest.raises(Invalid):
        read_head(tmp_path / "result")
