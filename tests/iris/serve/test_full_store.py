"""A disk of the store that is full: jobs can be read, and what cannot be told says why."""

import subprocess
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from neorion.iris.app.endpoints import routes
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.state.journal import Journal
from neorion.keel.base import Retry
from neorion.keel.rpc import Principal, RouteRequest
from tests.iris.serve.office import Office, asking, office

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return ballast


async def health(there: Office) -> bytes:
    route = next(one for one in routes(there.parts.context, there.metrics) if one.path == "/health")
    return (await route.handler(RouteRequest("GET", "/health", "", {}, b"", Principal("")))).body


async def started(there: Office, job: str) -> pb.Seen:
    """The end of a job's task, as its worker reports it."""
    await there.jobs("ada").submit(asking(job))
    task = await there.started(job)
    key = there.report_key(task.attempt)
    return pb.Seen(attempt=task.attempt, report_key=key, phase="ended", kind="exit", code=3)


async def end_unsaved(there: Office, disk: Path) -> None:
    """Ends one job, fills the disk, and ends another one."""
    joined = await there.join("by-hand")
    kept = await started(there, "/ada/kept")
    await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker, seen=[kept]))
    job = await started(there, "/ada/job")
    fill(disk)
    with anyio.move_on_after(0.2):
        await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker, seen=[job]))


async def test_jobs_are_read_while_the_store_takes_no_changes(small_disk: Path) -> None:
    async with office(small_disk) as there:
        assert await health(there) == b"ok\n"
        await end_unsaved(there, small_disk)
        ada = there.jobs("ada")
        with anyio.fail_after(20):
            shown = (await ada.list(pb.ListRequest())).jobs
            assert [(job.name, job.state) for job in shown] == [
                ("/ada/job", "running"),
                ("/ada/kept", "failed"),
            ]
            assert (await ada.get(pb.GetRequest(job="/ada/job"))).state == "running"
            assert (await ada.tasks(pb.TasksRequest(job="/ada/kept"))).tasks
            for call in (
                lambda: ada.wait(pb.WaitRequest(job="/ada/job")),
                lambda: ada.tasks(pb.TasksRequest(job="/ada/job")),
            ):
                with pytest.raises(Retry) as refused:
                    await call()
                assert refused.value.code == "iris.store_full"
        assert b"the store takes no changes" in await health(there)
        (small_disk / "ballast").unlink()
        with anyio.fail_after(20):
            while (await ada.get(pb.GetRequest(job="/ada/job"))).state != "failed":
                pass
            assert await health(there) == b"ok\n"


async def test_a_read_that_waits_for_the_store_hangs(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Journal, "wait_readable", Journal.wait_durable)
    async with office(small_disk) as there:
        await end_unsaved(there, small_disk)
        with anyio.move_on_after(1) as time:
            await there.jobs("ada").list(pb.ListRequest())
        assert time.cancelled_caught
        (small_disk / "ballast").unlink()
