"""A full disk, here or at the controller: what has no room waits for it, and nothing else does."""

import hashlib
import subprocess
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
from protobuf import Oneof

from neorion.iris.app.parts import ControllerSettings
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.spec import Command
from neorion.iris.ports import AttemptSpec
from neorion.iris.testing.memory_runtime import ScriptedOutcome
from neorion.iris.worker import deferred_starts
from neorion.iris.worker import worker as worker_module
from neorion.keel.base import Duration, NoCapacity
from tests.iris.serve.office import Office, asking, office, working

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root")]
MIB = 1024 * 1024
SOON = Duration.of(ms=10)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


async def grow(disk: Path) -> None:
    await anyio.run_process(["mount", "-o", "remount,size=64m", str(disk)])


async def ended(there: Office, job: str) -> str:
    with anyio.fail_after(20):
        answer = await there.jobs("ada").wait(pb.WaitRequest(job=job, timeout_ms=20_000))
    assert answer.job is not None
    return answer.job.state


def fate(order: AttemptSpec) -> ScriptedOutcome:
    """A task writes a value of as many bytes as its command says."""
    return (
        ScriptedOutcome(value=b"x" * int(order.entry.argv[0]))
        if isinstance(order.entry, Command)
        else ScriptedOutcome()
    )


@pytest.mark.parametrize("size", [MIB - 10, 3 * MIB], ids=["along with the report", "ahead of it"])
async def test_a_value_that_the_controller_has_no_room_for_waits_and_holds_up_nobody(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, size: int
):
    monkeypatch.setattr(worker_module, "_RETRY_EVERY", SOON)
    blobs = small_disk / "blobs"
    settings = ControllerSettings(tmp_path, secret="a secret", blobs=str(blobs))
    async with office(tmp_path, settings) as there, working(there, tmp_path, fate):
        (small_disk / "ballast").write_bytes(bytes(300_000))
        for name, value in (("/ada/large", size), ("/ada/small", 5), ("/ada/middle", 100_000)):
            await there.jobs("ada").submit(asking(name, argv=(str(value),)))
        assert await ended(there, "/ada/small") == "succeeded"
        assert await ended(there, "/ada/middle") == "succeeded"
        with pytest.raises(NoCapacity) as full:
            await there.jobs("ada").put_blob(pb.PutBlobRequest(digest=digest(BODY), body=BODY, last=True))
        assert full.value.code == "iris.blobs_full"
        await grow(small_disk)
        assert await ended(there, "/ada/large") == "succeeded"
        assert not list((blobs / "incoming").iterdir())


BODY = b"b" * MIB


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


async def test_a_task_whose_blobs_have_no_room_on_the_worker_waits_and_holds_up_nobody(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker_module, "_RETRY_EVERY", SOON)
    async with office(tmp_path) as there, working(there, small_disk, fate):
        for name in ("/ada/waits", "/ada/cancelled"):
            await there.jobs("ada").submit(calling(name))
            await there.started(name)
        await there.jobs("ada").submit(asking("/ada/small", argv=("5",)))
        assert await ended(there, "/ada/small") == "succeeded"
        job = await waits_for_room(there, "/ada/waits")
        (task,) = (await there.jobs("ada").tasks(pb.TasksRequest(job="/ada/waits"))).tasks
        assert job.reason is not None
        assert (
            job.reason.sentence
            == f"One of its tasks waits on {task.worker}, whose disk has no room for its files."
        )
        assert task.ending is not None
        assert task.ending.message == f"it waits for disk space on {task.worker}"
        await there.jobs("ada").cancel(pb.CancelRequest(job="/ada/cancelled"))
        assert await ended(there, "/ada/cancelled") == "cancelled"
        await grow(small_disk)
        assert await ended(there, "/ada/waits") == "succeeded"
        (task,) = (await there.jobs("ada").tasks(pb.TasksRequest(job="/ada/waits"))).tasks
        assert (task.tries, task.ending.message if task.ending else "") == (1, "")


async def waits_for_room(there: Office, job: str) -> pb.Job:
    """The job, as soon as it is known to wait for room."""
    with anyio.fail_after(30):
        async for change in there.jobs("ada").watch(pb.WatchRequest(job=job)):
            if change.job is not None and change.job.reason and change.job.reason.code == "worker_disk":
                return change.job
    raise AssertionError(f"{job} ended")


async def test_a_task_whose_blobs_get_no_room_is_tried_elsewhere_and_fails_where_there_is_no_other_worker(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker_module, "_RETRY_EVERY", SOON)
    async with office(tmp_path) as there, working(there, small_disk, fate):
        await there.jobs("ada").submit(calling("/ada/moves"))
        await waits_for_room(there, "/ada/moves")
        async with working(there, tmp_path / "roomy", fate):
            # More than the first worker has left beside what waits there.
            await there.jobs("ada").submit(asking("/ada/whole", cpu_milli=4000, argv=("5",)))
            assert await ended(there, "/ada/whole") == "succeeded"
            monkeypatch.setattr(deferred_starts, "DISK_WAIT_MAX", SOON)
            assert await ended(there, "/ada/moves") == "succeeded"
            tries = (await there.jobs("ada").attempts(pb.AttemptsRequest(job="/ada/moves"))).attempts
            assert [one.state for one in tries] == ["failed", "succeeded"]
            assert tries[0].worker != tries[1].worker
        for worker in list(there.parts.context.cluster.workers.values()):
            if worker.id == tries[1].worker:
                there.parts.reports.remove_worker(worker, "ended")
        await there.jobs("ada").submit(calling("/ada/alone"))
        assert await ended(there, "/ada/alone") == "failed"
        (task,) = (await there.jobs("ada").tasks(pb.TasksRequest(job="/ada/alone"))).tasks
        assert task.ending is not None
        assert task.ending.cause == "no_room"
        assert task.ending.message.startswith("There is no room for a task's blobs on ")


def calling(name: str) -> pb.SubmitRequest:
    request = asking(name)
    assert request.spec is not None
    request.spec.entry = Oneof("call", pb.Call(function=digest(BODY)))
    request.blobs = [pb.Blob(digest=digest(BODY), body=BODY)]
    return request
