"""What a task raises is raised where it is waited for, also what ends programs; and the client goes on."""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest
from anyio.from_thread import BlockingPortal

from neorion.iris.client import AsyncIrisClient, Deadline, IrisClient, JobFailed, WaitTimeout
from neorion.iris.model import TaskReason
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Error, Terminal
from tests.iris.processes import Cluster

pytestmark = pytest.mark.timeout(240)


class Halt(BaseException):
    """As those by which test runners skip, and servers stop."""


def throw(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize(
    ("end", "argument", "raised"),
    [
        (sys.exit, 7, JobFailed),
        (signal.raise_signal, signal.SIGINT, JobFailed),
        (throw, Halt(), Halt),
        (throw, GeneratorExit(), GeneratorExit),
        (throw, asyncio.CancelledError(), asyncio.CancelledError),
    ],
    ids=["exit", "interrupt", "own", "generator", "cancelled"],
)
def test_what_ends_programs_ends_no_client(
    client: IrisClient, end: Callable[[Any], None], argument: object, raised: type[BaseException]
):
    with pytest.raises(raised):
        client.wait(client.submit(end, "ends", args=(argument,)), timeout=60)
    with pytest.raises(raised):
        client.map(end, [argument], "ends-map")
    assert client.wait(client.submit(abs, "goes-on", args=(-1,)), timeout=60) == 1
    assert client.wait("goes-on") == client.wait(client.path("goes-on")) == 1


def test_a_task_that_exits_fails_with_its_code(client: IrisClient):
    with pytest.raises(JobFailed) as caught:
        client.wait(client.submit(sys.exit, "exits-3", args=(3,)), timeout=60)
    assert (caught.value.ending.code, caught.value.code) == (3, "iris.exit_code")
    assert caught.value.sentence.endswith("exits-3 ended with exit code 3.")
    assert isinstance(caught.value.__cause__, SystemExit)


class TwoWords(Exception):
    """Its own arguments are not those of its base."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")
        self.one = one


def test_an_error_with_arguments_of_its_own_arrives_as_what_it_is(client: IrisClient):
    def fails() -> None:
        raise TwoWords("salt", "pepper")

    with pytest.raises(TwoWords, match="salt and pepper") as caught:
        client.wait(client.submit(fails, "two-words"), timeout=60)
    assert caught.value.one == "salt"
    assert "in fails" in caught.value.__notes__[-1]


def test_a_wait_that_takes_too_long_is_also_pythons_timeout(client: IrisClient):
    job = client.submit("sleep 60", "too-long")
    for kind in (TimeoutError, Deadline, WaitTimeout):
        with pytest.raises(kind) as caught:
            client.wait(job, timeout=0.1)
        assert "has not ended within 0.1 s" in str(caught.value)
    job.cancel()


@pytest.mark.parametrize("end", [StopIteration("empty"), StopAsyncIteration("empty")], ids=repr)
def test_the_end_of_an_iteration_in_a_task_is_none_of_a_loop_that_waits_for_it(
    cluster: Cluster, client: IrisClient, end: Exception
):
    def told(caught: RuntimeError) -> None:
        assert (type(caught.__cause__), str(caught)) == (type(end), f"The task raised {end!r}.")
        assert "in throw" in caught.__notes__[-1]

    for ask in (
        lambda: client.wait(client.submit(throw, "stops", args=(end,)), timeout=60),
        lambda: client.map(throw, [end], "stops-map"),
        lambda: list(client.map(throw, [end], "stops-eager", as_completed=True)),
    ):
        with pytest.raises(RuntimeError) as caught:
            ask()
        told(caught.value)

    async def waits() -> None:
        async with AsyncIrisClient.remote(cluster.url) as there:
            with pytest.raises(RuntimeError) as caught:
                await (await there.submit(throw, "stops-async", args=(end,)))
            told(caught.value)
            with pytest.raises(RuntimeError) as caught:
                await there.map(throw, [end], "stops-async-map")
            told(caught.value)

    asyncio.run(waits())


def of_the_task_alone(end: str) -> object:
    """Something of a module that nobody has but the task."""
    Path("onlythere.py").write_text("class Full(Exception): pass\n")
    full: type[Exception] = importlib.import_module("onlythere").Full
    if end == "raise":
        raise full("80 GiB are not enough")
    return full("of memory")


def test_what_cannot_be_unpickled_here_does_not_pass_for_the_tasks_own_error(client: IrisClient):
    with pytest.raises(Terminal, match=r"The error of the task .* No module named 'onlythere'") as caught:
        client.wait(client.submit(of_the_task_alone, "raises-there", args=("raise",)), timeout=60)
    assert caught.value.code == "iris.unreadable"
    assert "onlythere.Full: 80 GiB are not enough" in caught.value.__notes__[-1]
    with pytest.raises(Terminal, match=r"The value of the task .* No module named 'onlythere'"):
        client.wait(client.submit(of_the_task_alone, "returns-there", args=("return",)), timeout=60)
    with pytest.raises(Terminal) as caught:
        client.map(of_the_task_alone, ["raise"])
    assert "onlythere.Full: 80 GiB are not enough" in caught.value.__notes__[-1]


def test_ctrl_c_ends_a_wait_that_has_only_begun(
    cluster: Cluster, client: IrisClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    job = client.submit(f"read line < {gate}", "outlives-ctrl-c")
    start = BlockingPortal.start_task_soon

    def interrupted(portal: BlockingPortal, *args: Any) -> NoReturn:
        start(portal, *args)
        monkeypatch.undo()
        raise KeyboardInterrupt

    # A wait that nobody ended would go on until the job has, and the client with it.
    late = threading.Timer(30, gate.write_text, ["\n"])
    late.start()
    with IrisClient.remote(cluster.url) as hasty:
        monkeypatch.setattr(BlockingPortal, "start_task_soon", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hasty.wait(job)
    late.cancel()
    assert client.get(job).state in ("pending", "running")
    client.cancel(job)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: IrisClient.remote("ftp://x"), "rpc.address"),
        (IrisClient.current, "iris.not_in_task"),
        (lambda: IrisClient.local(workers=0), "iris.workers"),
        (lambda: IrisClient.local(workers=10**9), "iris.workers"),
    ],
    ids=["remote", "current", "none", "too many"],
)
def test_a_client_that_could_not_be_made_leaves_nothing(make: Callable[[], IrisClient], code: str):
    before = threading.enumerate()
    with pytest.raises(Error) as refused:
        make()
    assert refused.value.code == code
    # A thread of its own would keep the program from ending.
    assert threading.enumerate() == before


def test_a_client_that_is_closed_says_so(cluster: Cluster):
    with IrisClient.remote(cluster.url) as client:
        job = client.submit("true", "outlives-its-client")
    with pytest.raises(Error) as refused:
        job.status()
    assert refused.value.code == "iris.closed"
    # In a notebook the job shows its name.
    assert job._repr_html_() is None


def test_a_client_that_another_thread_closes_waits_no_longer(
    cluster: Cluster, client: IrisClient, tmp_path: Path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    job = client.submit(f"echo > {gate}; sleep infinity", "outlives-a-waiting-client")
    gate.read_text()
    with ThreadPoolExecutor(1) as threads, IrisClient.remote(cluster.url) as closed:
        following = iter(closed.watch(job.id))
        caught_up, state = False, ""
        while not (caught_up and state == "running"):
            change = next(following)
            caught_up, state = caught_up or change.caught_up, change.job.state if change.job else ""
        waiting = threads.submit(next, following)
    with pytest.raises(Error) as refused:
        waiting.result(timeout=60)
    assert refused.value.code == "iris.closed"
    assert client.get(job).state == "running"
    client.cancel(job)


FORKED = """
import os, sys
from iris.client import IrisClient
with IrisClient.local(workers=1) as client:
    for end in (os._exit, sys.exit):
        if not os.fork():
            try:
                client.submit("true", "of-the-fork")
            except Exception as refused:
                end(refused.code == "iris.forked" and 7)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    print(client.wait(client.submit(lambda: "well", "of-its-own"), timeout=60))
"""


def test_a_fork_is_told_to_make_a_client_and_ends_no_cluster():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["7", "7", "well"]


@pytest.mark.parametrize("cause", [cause for cause in TaskReason if cause is not TaskReason.DONE])
def test_every_end_is_one_sentence(cause: TaskReason):
    ending = pb.Ending(cause=cause, code=7, message='There is no program "x" on this worker.')
    sentence = JobFailed(pb.Job(name="/ada/job"), ending).sentence
    assert sentence.startswith("/ada/job ")
    assert sentence.endswith(".")
    assert not sentence.endswith("..")
    assert "_" not in sentence


def test_what_could_not_start_says_why():
    ending = pb.Ending(cause="not_built", code=127, message='There is no program "x" on this worker.')
    assert JobFailed(pb.Job(name="/ada/job"), ending).sentence == (
        '/ada/job could not be started: There is no program "x" on this worker.'
    )
