"""Jobs that tasks submit: named below their parent, made of what it has, and gone when it is."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neorion.iris.client import AsyncIrisClient, IrisClient, JobCancelled
from neorion.iris.model.tokens import task_token
from neorion.keel.base import Denied, Invalid, Unauthenticated
from tests.iris.processes import Cluster

pytestmark = pytest.mark.timeout(240)


def square(number: int) -> int:
    return number * number


def fan_out() -> int:
    with IrisClient.current() as inner:
        jobs = [inner.submit(square, f"square-{n}", args=(n,)) for n in (2, 3, 4)]
        return sum(inner.wait(job, timeout=60) for job in jobs)


def test_a_task_submits_children_and_returns_their_sum(client: IrisClient):
    parent = client.submit(fan_out, "fan-out")
    assert client.wait(parent, timeout=90) == 4 + 9 + 16
    children = client.jobs(f"{parent.name}/")
    assert sorted(job.name for job in children) == [f"{parent.name}/square-{n}" for n in (2, 3, 4)]
    assert {job.parent for job in children} == {parent.id}


def test_a_plain_remote_inside_of_a_task_means_the_same(client: IrisClient):
    def inside() -> str:
        with IrisClient.remote() as inner:
            return inner.submit("true", "child").name

    parent = client.submit(inside, "plain")
    assert client.wait(parent, timeout=60) == f"{parent.name}/child"


def test_asyncio_inside_of_a_task_means_the_same(client: IrisClient):
    async def submit() -> Any:
        async with AsyncIrisClient.current() as inner:
            return await (await inner.submit(square, "child", args=(5,)))

    def inside() -> Any:
        import anyio  # noqa: PLC0415 -- in the task

        return anyio.run(submit)

    assert client.wait(client.submit(inside, "async-parent"), timeout=60) == 25


def test_the_command_line_inside_of_a_task_makes_children_too(client: IrisClient):
    def inside() -> tuple[int, str]:
        program = [sys.executable, "-c", "from neorion.iris.cli import main; main()"]
        done = subprocess.run(
            [*program, "run", "--no-bundle", "--name", "by-hand", "--", "sh", "-c", "echo $IRIS_JOB_NAME"],
            check=False,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    parent = client.submit(inside, "shell-parent")
    assert client.wait(parent, timeout=90) == (0, f"{parent.name}/by-hand\n")


def test_children_have_what_their_parent_has(client: IrisClient):
    def inside() -> list[dict[str, str]]:
        def told() -> dict[str, str]:
            return {name: os.environ[name] for name in ("COLOUR", "SHAPE", "IRIS_PRIORITY")}

        with IrisClient.current() as inner:
            plain = inner.submit(told, "plain")
            other = inner.submit(told, "other", env={"SHAPE": "round"}, priority="production")
            return [inner.wait(job, timeout=60) for job in (plain, other)]

    parent = client.submit(inside, "heir", env={"COLOUR": "red", "SHAPE": "square"}, priority="batch")
    assert client.wait(parent, timeout=90) == [
        {"COLOUR": "red", "SHAPE": "square", "IRIS_PRIORITY": "batch"},
        {"COLOUR": "red", "SHAPE": "round", "IRIS_PRIORITY": "production"},
    ]


def leave_children(pids: str) -> Callable[[], None]:
    """A task with a child that runs, a child of that child, and both process numbers in a file."""

    def grandchild() -> None:
        Path(pids, "grandchild").write_text(str(os.getpid()))
        print("up", flush=True)  # noqa: T201 -- what its parent waits for
        os.read(os.pipe()[0], 1)

    def child() -> None:
        Path(pids, "child").write_text(str(os.getpid()))
        with IrisClient.current() as inner:
            next(inner.submit(grandchild, "grandchild").follow())
            print("up", flush=True)  # noqa: T201 -- as above
            os.read(os.pipe()[0], 1)

    def parent() -> None:
        with IrisClient.current() as inner:
            next(inner.submit(child, "child").follow())
            print("up", flush=True)  # noqa: T201 -- as above
            os.read(os.pipe()[0], 1)

    return parent


def gone(client: IrisClient, folder: Path) -> bool:
    """Whether the processes have ended, asked when their places are free again."""
    client.wait(client.submit("true", "all-places", replicas=2, resources={"cpu": 4}), timeout=60)
    return not any(Path("/proc", path.read_text()).exists() for path in folder.iterdir())


def test_cancelling_the_parent_ends_its_children_and_theirs(client: IrisClient, tmp_path: Path):
    parent = client.submit(leave_children(str(tmp_path)), "family", resources={"cpu": 0.5})
    assert next(parent.follow()) == "up\n"
    names = [parent.name, f"{parent.name}/child", f"{parent.name}/child/grandchild"]
    assert sorted(client.cancel(parent)) == names
    assert [client.get(name).state for name in names] == ["cancelled"] * 3
    assert gone(client, tmp_path)


def test_a_parent_that_fails_takes_its_children_with_it(client: IrisClient):
    def fails() -> None:
        with IrisClient.current() as inner:
            next(inner.submit("echo up; sleep 600", "child").follow())
        raise ValueError("enough")

    parent = client.submit(fails, "failing")
    with pytest.raises(ValueError, match="enough"):
        client.wait(parent, timeout=60)
    child = client.get(f"{parent.name}/child")
    assert (child.state, child.ending and child.ending.cause) == ("cancelled", "job_over")


def test_a_parent_that_is_tried_again_begins_with_no_children(client: IrisClient, tmp_path: Path):
    mark = str(tmp_path / "mark")

    def twice() -> str:
        with IrisClient.current() as inner:
            # The same name and the same key again: what died with the first try is not in the way of the second.
            child = inner.submit(f"echo up; test -e {mark} || sleep 600", "child", key=f"twice-{mark}")
            next(child.follow())
            if not os.path.exists(mark):  # noqa: PTH110 -- in the task
                open(mark, "w").close()  # noqa: PTH123 -- in the task
                os.abort()
            inner.wait(child, timeout=60)
            return child.id

    parent = client.submit(twice, "twice", retries=1)
    second = client.wait(parent, timeout=90)
    states = {job.id: job.state for job in client.jobs(f"{parent.name}/")}
    assert states.pop(second) == "succeeded"
    assert list(states.values()) == ["cancelled"]


def test_a_task_reaches_its_own_family_and_nobody_else(client: IrisClient):
    stranger = client.submit("sleep 600", "stranger")

    def tries(of: str) -> dict[str, str]:
        codes: dict[str, str] = {}
        with IrisClient.current() as inner:
            attempts: dict[str, Callable[[], object]] = {
                "get": lambda: inner.get(of),
                "cancel": lambda: inner.cancel(of),
                "logs": lambda: inner.logs(of),
                "tasks": lambda: inner.tasks(of),
                "wait": lambda: inner.wait(of, timeout=1),
                "submit": lambda: inner.submit("true", "/somebody/else"),
                "itself": lambda: inner.submit("true", os.environ["IRIS_JOB_NAME"]),
                "drain": inner.workers,
            }
            for name, attempt in attempts.items():
                try:
                    attempt()
                    codes[name] = "let through"
                except Denied as error:
                    codes[name] = error.code
            codes["list"] = ",".join(job.name for job in inner.jobs())
        return codes

    assert client.wait(client.submit(tries, "curious", args=(stranger.name,)), timeout=60) == {
        **dict.fromkeys(["get", "cancel", "logs", "tasks", "wait", "submit"], "iris.not_kin"),
        "itself": "iris.own_name",
        "drain": "rpc.role",
        "list": "",
    }
    client.cancel(stranger)


def test_a_token_is_no_good_after_its_task_and_cannot_be_guessed(client: IrisClient, cluster: Cluster):
    def token() -> str:
        return os.environ["IRIS_TOKEN"]

    live = client.submit("echo up; sleep 600", "live")
    next(live.follow())
    guessed = task_token(live.tasks()[0].attempt, "guessed")
    late = client.wait(client.submit(token, "token"), timeout=60)
    for wrong in (guessed, late, task_token("attempt-00000000000000000000000000", "x"), "task.."):
        with (
            IrisClient.remote(cluster.url, token=wrong) as stranger,
            pytest.raises(Unauthenticated) as refused,
        ):
            stranger.jobs()
        assert refused.value.code == "rpc.bad_token"
    live.cancel()


def test_outside_of_a_task_there_is_no_current_one():
    with pytest.raises(Invalid) as refused:
        IrisClient.current()
    assert refused.value.code == "iris.not_in_task"


def test_the_end_of_a_cancelled_child_is_told_to_its_parent(client: IrisClient):
    def inside() -> str:
        with IrisClient.current() as inner:
            child = inner.submit("sleep 600", "child")
            child.cancel()
            try:
                inner.wait(child, timeout=60)
            except JobCancelled as error:
                return error.code
        return "nothing"

    assert client.wait(client.submit(inside, "canceller"), timeout=60) == "iris.cancelled"
