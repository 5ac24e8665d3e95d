"""`map` with real processes: order, arguments, failures, progress, and its end before its time."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.iris.client import Args, AsyncIrisClient, IrisClient, JobFailed
from neorion.iris.model.gen import iris_pb as pb
from tests.iris.processes import Cluster

pytestmark = pytest.mark.timeout(240)

SMALL = {"cpu": 0.1, "memory": "64Mi"}


def add(left: int, right: int = 0, *, factor: int = 1) -> int:
    return (left + right) * factor


def test_items_may_be_several_arguments(client: IrisClient):
    items = [1, Args(1, 2), Args(1, factor=5), Args(left=1, right=2, factor=3)]
    assert client.map(add, items) == [1, 3, 5, 9]


def test_no_items_need_no_job(client: IrisClient):
    assert client.map(add, [], "nothing") == []
    assert list(client.map(add, [], "nothing", as_completed=True)) == []
    assert not [job for job in client.jobs() if job.name.endswith("/nothing")]


def test_values_come_as_they_are_ready(client: IrisClient, tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def slow_first(number: int) -> int:
        if number == 0:
            gate.read_bytes()
        return number * 10

    seen: list[tuple[int, Any]] = []
    for pair in client.map(slow_first, range(4), as_completed=True, chunk=1, resources=SMALL):
        seen.append(pair)
        if len(seen) == 3:
            # Nothing but its own end holds the first one back.
            gate.write_bytes(b"go")
    assert sorted(seen[:3]) == [(1, 10), (2, 20), (3, 30)]
    assert seen[3] == (0, 0)


def test_warm_workers_are_used_again(client: IrisClient):
    def who(_: int) -> int:
        return os.getpid()

    # Sixteen tasks, and room for eight of them at once.
    pids = client.map(who, range(64), chunk=4)
    assert len({pids[start] for start in range(0, 64, 4)}) <= 8


@pytest.mark.parametrize("chunk", [0, 1, 7, 1000])
def test_chunks_of_any_size_give_the_same(client: IrisClient, chunk: int):
    assert client.map(add, range(20), chunk=chunk, resources=SMALL) == list(range(20))


def fail_at_seven(number: int) -> int:
    if number == 7:
        raise ValueError("not this one")
    return number


def test_a_failure_says_which_item_it_was(client: IrisClient):
    with pytest.raises(ValueError, match="not this one") as caught:
        client.map(fail_at_seven, range(10), chunk=5)
    assert "In item 7 of the map: 7" in caught.value.__notes__


def test_a_task_that_dies_says_which_items_it_had(client: IrisClient):
    def die_at_seven(number: int) -> int:
        if number == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(JobFailed) as caught:
        client.map(die_at_seven, range(10), chunk=5)
    assert caught.value.code == "iris.signal"
    assert caught.value.__notes__[-1] == "It had the items 5 to 9 of the map."


def test_exceptions_may_stand_in_the_place_of_values(client: IrisClient):
    values = client.map(fail_at_seven, range(10), chunk=5, return_exceptions=True)
    assert values[:7] + values[8:] == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert isinstance(values[7], ValueError)


def test_an_item_that_exits_is_one_item(client: IrisClient):
    # Well: no value, as of a function that is not mapped. Otherwise as any exception.
    assert client.map(sys.exit, [0, None]) == [None, None]
    with pytest.raises(JobFailed, match="exit code 3") as caught:
        client.map(sys.exit, [0, 3], chunk=2)
    assert "In item 1 of the map: 3" in caught.value.__notes__
    none, error, last = client.map(sys.exit, [0, 3, None], chunk=3, return_exceptions=True)
    assert (none, type(error), last) == (None, SystemExit, None)


class Odd(Exception):
    """It cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("odd one")
        self.lock = threading.Lock()


def test_an_exception_that_cannot_be_pickled_is_told_in_words(client: IrisClient):
    def odd(number: int) -> int:
        if number:
            raise Odd
        return number

    zero, error = client.map(odd, range(2), return_exceptions=True)
    assert zero == 0
    assert str(error) == "Odd: odd one"
    assert error.__notes__ == ["In item 1 of the map: 1"]


def test_with_exceptions_as_values_a_dead_task_costs_its_own_items_alone(client: IrisClient):
    def die_at_seven(number: int) -> int:
        if number == 7:
            os._exit(3)
        return number

    values = client.map(die_at_seven, range(10), chunk=2, return_exceptions=True, resources=SMALL)
    assert values[:6] + values[8:] == [0, 1, 2, 3, 4, 5, 8, 9]
    assert [type(value) for value in values[6:8]] == [JobFailed, JobFailed]


def test_progress_is_told_item_by_item(client: IrisClient):
    told: list[tuple[int, int]] = []
    client.map(add, range(6), chunk=2, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 6) for done in range(1, 7)]


def test_a_progress_that_raises_ends_the_map(client: IrisClient):
    def enough(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match="1 of 3"):
        client.map(add, range(3), "told-too-much", progress=enough)


def test_whoever_stops_reading_stops_the_map(client: IrisClient):
    def slow(number: int) -> int:
        if number:
            os.read(os.pipe()[0], 1)
        return number

    pairs = client.map(slow, range(3), "half-read", as_completed=True, chunk=1, resources=SMALL)
    assert next(pairs) == (0, 0)
    pairs.close()  # pyright: ignore[reportAttributeAccessIssue] -- it is a generator
    assert client.get(client.path("half-read")).state == "cancelled"


SCRIPT = """
import os
from iris.client import IrisClient
def sleep(number):
    with open("{gate}", "w") as gate:
        gate.write("up")
    os.read(os.pipe()[0], 1)
IrisClient.remote("{url}").map(sleep, [0], "interrupted")
"""


def test_ctrl_c_cancels_the_map(cluster: Cluster, client: IrisClient, tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    program = [sys.executable, "-c", SCRIPT.format(url=cluster.url, gate=gate)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        assert gate.read_text() == "up"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors
    assert client.get(client.path("interrupted")).state == "cancelled"


@pytest.mark.anyio
async def test_the_async_client_maps_both_ways(cluster: Cluster):
    async with AsyncIrisClient.remote(cluster.url) as client:
        assert await client.map(add, range(5)) == list(range(5))
        pairs = [pair async for pair in client.map(add, range(5), as_completed=True)]
        assert sorted(pairs) == [(number, number) for number in range(5)]


@pytest.mark.anyio
async def test_a_map_that_is_left_while_it_is_submitted_is_cancelled_too(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    calls: list[str] = []
    async with AsyncIrisClient.remote(cluster.url) as client, anyio.create_task_group() as group:
        submit = client.calls.submit

        async def answered_late(request: pb.SubmitRequest) -> pb.SubmitResponse:
            answer = await submit(request)
            calls.append(answer.id)
            if len(calls) == 1:
                group.cancel_scope.cancel()
                await anyio.sleep_forever()
            return answer

        monkeypatch.setattr(client.calls, "submit", answered_late)
        await client.map(signal.sigwait, [[signal.SIGUSR1]], "left-early")
    async with AsyncIrisClient.remote(cluster.url) as client:
        assert (await client.get("left-early")).state == "cancelled"
        assert set(calls) == {(await client.get("left-early")).id}
