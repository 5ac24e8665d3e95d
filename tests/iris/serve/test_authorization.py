"""A token speaks for its owner and for nobody else."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from neorion.iris.app.parts import ControllerSettings
from neorion.iris.model import WorkerId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.lease import WorkerLeaseTiming
from neorion.keel.base import Denied, Duration, NotFound, Unauthenticated
from tests.iris.serve.office import Office, asking, joining, office

pytestmark = pytest.mark.anyio


async def test_a_user_submits_and_cancels_below_their_own_name_alone(tmp_path: Path):
    async with office(tmp_path) as there:
        with pytest.raises(Denied, match="belongs to bob") as refused:
            await there.jobs("ada").submit(asking("/bob/job"))
        assert refused.value.code == "iris.not_yours"
        await there.jobs("bob").submit(asking("/bob/job"))
        with pytest.raises(Denied):
            await there.jobs("ada").cancel(pb.CancelRequest(job="/bob/job"))
        with pytest.raises(Denied):
            await there.jobs("ada").cancel(pb.CancelRequest(job="/bob/job", dry_run=True))
        assert (await there.jobs("ada").get(pb.GetRequest(job="/bob/job"))).state == "pending"
        assert (await there.jobs("root").cancel(pb.CancelRequest(job="/bob/job"))).jobs == ["/bob/job"]


async def test_what_a_job_says_is_for_its_owner_and_administrators(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        await there.jobs("bob").submit(asking("/bob/job", argv=["train", "--key=secret"]))
        task = await there.started("/bob/job")
        log = pb.LogChunk(attempt=task.attempt, report_key=there.report_key(task.attempt), text=b"written")
        seen = pb.Seen(
            attempt=task.attempt,
            report_key=there.report_key(task.attempt),
            phase="ended",
            kind="exit",
            code=3,
            message="said",
            log=log,
        )
        await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker, seen=[seen]))
        for name in ("bob", "root"):
            job = (await there.jobs(name).wait(pb.WaitRequest(job="/bob/job"))).job
            assert job is not None
            assert job.ending is not None
            assert (job.entry, job.ending.message) == ("train --key=secret", "said")
            logs = [one.text async for one in there.jobs(name).logs(pb.LogsRequest(job="/bob/job"))]
            assert logs == [b"written"]
        ada = there.jobs("ada")
        with pytest.raises(Denied) as refused:
            await ada.wait(pb.WaitRequest(job="/bob/job"))
        assert refused.value.code == "iris.not_yours"
        with pytest.raises(Denied):
            [one async for one in ada.logs(pb.LogsRequest(job="/bob/job"))]


async def test_others_see_a_job_and_how_it_fares_but_not_what_it_says(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        await there.jobs("bob").submit(asking("/bob/job", argv=["train", "--key=secret"]))
        task = await there.started("/bob/job")
        value = pb.Blob(digest=hashlib.sha256(b"value").hexdigest(), body=b"value")
        seen = pb.Seen(
            attempt=task.attempt,
            report_key=there.report_key(task.attempt),
            phase="ended",
            kind="exit",
            code=3,
            message="said",
            result=value,
            result_bytes=5,
        )
        await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker, seen=[seen]))
        ada = there.jobs("ada")
        changes = [one async for one in ada.watch(pb.WatchRequest(job="/bob/job"))]
        jobs = [
            await ada.get(pb.GetRequest(job="/bob/job")),
            *(await ada.list(pb.ListRequest())).jobs,
            *(change.job for change in changes if change.job),
        ]
        tasks = [
            *(await ada.tasks(pb.TasksRequest(job="/bob/job"))).tasks,
            *(task for change in changes for task in change.tasks),
        ]
        assert [(job.name, job.state, job.entry) for job in jobs] == [("/bob/job", "failed", "")] * 3
        tries = (await ada.attempts(pb.AttemptsRequest(job="/bob/job"))).attempts
        ends = [one.ending for one in (*jobs, *tasks, *tries)]
        assert [(end.cause, end.code, end.message, end.result) for end in ends if end] == [
            ("exit_code", 3, "", "")
        ] * 6


async def test_only_administrators_manage_workers_and_read_the_audit_log(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        for call in (
            there.cluster("ada").drain(pb.DrainRequest(worker=joined.worker)),
            there.cluster("ada").revoke(pb.RevokeRequest(worker=joined.worker)),
            there.cluster("ada").audit(pb.AuditRequest()),
        ):
            with pytest.raises(Denied):
                await call
        assert not there.parts.context.cluster.workers[WorkerId(joined.worker)].draining


async def test_a_token_for_joining_is_good_for_nothing_else(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        worker = there.worker("by-hand")
        for call in (
            worker.report(pb.ReportRequest(worker=joined.worker)),
            worker.push_logs(pb.PushLogsRequest(worker=joined.worker)),
        ):
            with pytest.raises(Denied):
                await call
        with pytest.raises(Denied):
            await there.jobs("by-hand").list(pb.ListRequest())
        with pytest.raises(Denied):
            await there.jobs(joined.token).list(pb.ListRequest())


Speech = Callable[[Office, pb.JoinResponse, pb.JoinResponse, str], Awaitable[Any]]


async def _report(there: Office, mine: pb.JoinResponse, other: pb.JoinResponse, attempt: str) -> None:
    seen = pb.Seen(attempt=attempt, report_key=there.report_key(attempt), phase="ended", kind="exit")
    await there.worker(mine.token).report(pb.ReportRequest(worker=other.worker, seen=[seen]))


async def _logs(there: Office, mine: pb.JoinResponse, other: pb.JoinResponse, attempt: str) -> None:
    chunk = pb.LogChunk(attempt=attempt, report_key=there.report_key(attempt), text=b"forged")
    await there.worker(mine.token).push_logs(pb.PushLogsRequest(worker=other.worker, chunks=[chunk]))


async def _orders(there: Office, mine: pb.JoinResponse, other: pb.JoinResponse, attempt: str) -> None:
    del attempt
    async for _ in there.worker(mine.token).orders(pb.OrdersRequest(worker=other.worker)):
        pass


@pytest.mark.parametrize("speak", [_report, _logs, _orders])
async def test_the_token_of_one_worker_is_refused_for_another(tmp_path: Path, speak: Speech):
    async with office(tmp_path) as there:
        other = await there.join("by-hand")
        await there.jobs("ada").submit(asking("/ada/job", cpu_milli=4000))
        task = await there.started("/ada/job")
        mine = await there.join("by-hand")
        with pytest.raises(Denied) as refused:
            await speak(there, mine, other, task.attempt)
        assert refused.value.code == "iris.not_this_worker"
        assert (await there.jobs("ada").get(pb.GetRequest(job="/ada/job"))).state == "running"


async def test_a_worker_changes_nothing_of_anothers_attempts_under_its_own_name(tmp_path: Path):
    async with office(tmp_path) as there:
        await there.join("by-hand")
        await there.jobs("ada").submit(asking("/ada/job", cpu_milli=4000))
        task = await there.started("/ada/job")
        mine = await there.join("by-hand")
        chunk = pb.LogChunk(attempt=task.attempt, report_key=there.report_key(task.attempt), text=b"forged")
        seen = pb.Seen(
            attempt=task.attempt,
            report_key=there.report_key(task.attempt),
            phase="ended",
            kind="exit",
            log=chunk,
        )
        worker = there.worker(mine.token)
        answer = await worker.report(pb.ReportRequest(worker=mine.worker, seen=[seen]))
        await worker.push_logs(pb.PushLogsRequest(worker=mine.worker, chunks=[chunk]))
        assert answer.forget == [task.attempt]
        assert (await there.jobs("ada").get(pb.GetRequest(job="/ada/job"))).state == "running"
        logs = [one.text async for one in there.jobs("ada").logs(pb.LogsRequest(job="/ada/job"))]
        assert logs == []


async def test_a_machine_joins_its_own_slice_and_no_other(tmp_path: Path):
    async with office(tmp_path) as there:
        first, _second = there.slice("slice-1"), there.slice("slice-2")
        await there.join(first, "slice-1")
        for token, piece in ((first, "slice-2"), ("by-hand", "slice-1")):
            with pytest.raises(Denied):
                await there.join(token, piece)


async def test_whoever_joins_again_is_who_its_token_says(tmp_path: Path):
    async with office(tmp_path) as there:
        victim, mine = await there.join("by-hand"), await there.join("by-hand")
        claim = joining("by-hand-1")
        claim.worker = victim.worker
        assert (await there.worker(mine.token).join(claim)).worker == mine.worker
        assert (await there.worker("by-hand").join(claim)).worker not in (mine.worker, victim.worker)


async def test_a_revoked_token_is_refused_and_its_work_goes_elsewhere_when_the_lease_is_over(tmp_path: Path):
    lease = WorkerLeaseTiming.within(Duration.of(seconds=0.5))
    async with office(tmp_path, ControllerSettings(tmp_path, secret="a secret", lease=lease)) as there:
        badge = there.slice("slice-1")
        bad = await there.join(badge, "slice-1")
        await there.jobs("ada").submit(asking("/ada/job"))
        task = await there.started("/ada/job")
        await there.cluster("root").revoke(pb.RevokeRequest(worker=bad.worker))
        with pytest.raises(Unauthenticated):
            await there.worker(bad.token).report(pb.ReportRequest(worker=bad.worker))
        with pytest.raises(Unauthenticated):
            await there.join(badge, "slice-1")
        good = pb.JoinResponse()
        async for change in there.jobs("ada").watch(pb.WatchRequest(job="/ada/job")):
            if change.tasks and change.tasks[0].state == "pending":
                good = await there.join("by-hand")
            if change.tasks and change.tasks[0].attempt not in ("", task.attempt):
                assert change.tasks[0].worker == good.worker
                break


async def test_a_revoked_machine_that_was_started_by_hand_does_not_join_again(tmp_path: Path):
    async with office(tmp_path) as there:
        bad, good = await there.join("by-hand"), await there.join("by-hand", "by-hand-2")
        await there.cluster("root").revoke(pb.RevokeRequest(worker=bad.worker))
        for piece in ("by-hand-1", "by-hand-3"):
            with pytest.raises(Unauthenticated):
                await there.join("by-hand", piece)
        await there.worker(good.token).report(pb.ReportRequest(worker=good.worker))
        assert (await there.join("by-hand-again", "by-hand-3")).worker not in (bad.worker, good.worker)


async def test_revoking_a_machine_of_a_slice_leaves_the_others_their_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with office(tmp_path) as there:
        joined = await there.join(there.slice("slice-1"), "slice-1")
        await there.cluster("root").revoke(pb.RevokeRequest(worker=joined.worker))
        await there.join("by-hand")
        there.parts.reports.mark_worker_lost(
            there.parts.context.cluster.workers[WorkerId(joined.worker)], "silent"
        )
    assert "worker lost" not in caplog.text


async def test_tokens_outlive_a_restart_and_die_with_what_they_speak_for(tmp_path: Path):
    async with office(tmp_path) as there:
        badge = there.slice("slice-1")
        joined = await there.join(badge, "slice-1")
    async with office(tmp_path) as there:
        await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker))
        there.parts.reports.mark_worker_lost(
            there.parts.context.cluster.workers[WorkerId(joined.worker)], "test"
        )
        with pytest.raises(Unauthenticated):
            await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker))
    async with office(tmp_path, ControllerSettings(tmp_path, secret="another secret")) as there:
        with pytest.raises(Unauthenticated):
            await there.join(badge, "slice-1")


@pytest.mark.parametrize("token", ["worker.x.y", "slice..", "worker", "...", "worker.job.", "task.a.b"])
async def test_a_made_up_token_is_nobodys(tmp_path: Path, token: str):
    async with office(tmp_path) as there:
        with pytest.raises(Unauthenticated):
            await there.join(token)


async def test_what_is_not_there_is_not_found(tmp_path: Path):
    async with office(tmp_path) as there:
        with pytest.raises(NotFound):
            await there.cluster("root").revoke(pb.RevokeRequest(worker="worker-x"))
