"""Changes of a job reach whoever watches it, whole at first, then as they happen, and never before they are durable."""

from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from neorion.iris.model import JobId, TaskReason, TaskState
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.serve import jobs
from neorion.keel.base import NotFound
from tests.iris.serve.office import asking, office

pytestmark = pytest.mark.anyio


async def test_a_job_is_told_from_its_wait_to_its_end(tmp_path: Path):
    async with office(tmp_path) as there:
        answer = await there.jobs("ada").submit(asking("/ada/job"))
        joined = pb.JoinResponse()
        states: list[str] = []
        reasons: list[str] = []
        async for change in there.jobs("bob").watch(pb.WatchRequest(job=answer.id)):
            assert change.job is not None
            states.append(change.job.state)
            reasons.append(change.job.reason.code if change.job.reason else "")
            if reasons[-1] == "no_workers" and len(states) < 5:
                joined = await there.join("by-hand")
            for task in change.tasks:
                if task.state == "running":
                    seen = pb.Seen(
                        attempt=task.attempt,
                        report_key=there.report_key(task.attempt),
                        phase="ended",
                        kind="exit",
                    )
                    report = pb.ReportRequest(worker=joined.worker, seen=[seen])
                    await there.worker(joined.token).report(report)
        assert "no_workers" in reasons
        assert states[0] == "pending"
        assert "running" in states
        assert states[-1] == "succeeded"
        assert sorted(states, key=["pending", "running", "succeeded"].index) == states


async def test_a_large_job_comes_in_pages_and_then_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs, "PAGE_MAX", 10)
    async with office(tmp_path) as there:
        answer = await there.jobs("ada").submit(asking("/ada/job", replicas=25))
        async with aclosing(there.jobs("ada").watch(pb.WatchRequest(job=answer.id))) as changes:
            pages = [await anext(changes) for _ in range(3)]
            assert [len(page.tasks) for page in pages] == [10, 10, 5]
            assert [page.caught_up for page in pages] == [False, False, True]
            task = there.parts.context.cluster.tasks[JobId(answer.id)][17]
            there.parts.lifecycle.expire_task(task)
            found: dict[int, str] = {}
            async for change in changes:
                found |= {one.index: one.state for one in change.tasks}
            assert found[17] == TaskState.FAILED


async def test_who_reads_slowly_is_told_the_last_word_and_nothing_old(tmp_path: Path):
    async with office(tmp_path) as there:
        answer = await there.jobs("ada").submit(asking("/ada/job", replicas=3))
        async with aclosing(there.jobs("ada").watch(pb.WatchRequest(job=answer.id))) as changes:
            await anext(changes)
            there.parts.lifecycle.cancel(JobId(answer.id), TaskReason.CANCELLED)
            rest = [change async for change in changes]
        assert rest[-1].job is not None
        assert rest[-1].job.state == "cancelled"
        assert [task.state for task in rest[-1].tasks] == ["cancelled"] * 3


async def test_watching_what_has_ended_ends_at_once_and_what_never_was_is_not_found(tmp_path: Path):
    async with office(tmp_path) as there:
        answer = await there.jobs("ada").submit(asking("/ada/job"))
        await there.jobs("ada").cancel(pb.CancelRequest(job=answer.id))
        told = [change async for change in there.jobs("ada").watch(pb.WatchRequest(job=answer.id))]
        assert [change.job.state for change in told if change.job] == ["cancelled"]
        with pytest.raises(NotFound):
            async for _ in there.jobs("ada").watch(pb.WatchRequest(job="/ada/other")):
                pass


async def test_nobody_is_remembered_who_has_gone(tmp_path: Path):
    async with office(tmp_path) as there:
        answer = await there.jobs("ada").submit(asking("/ada/job"))
        with anyio.move_on_after(0.3):
            async for _ in there.jobs("ada").watch(pb.WatchRequest(job=answer.id)):
                pass
        await there.jobs("ada").cancel(pb.CancelRequest(job=answer.id))
        assert there.parts.watches._watches == {}
