"""Whatever changes something is on record, done or refused, and outlives the controller."""

from pathlib import Path

import pytest

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.state import audit_rows
from neorion.keel.base import Denied, Error, Unauthenticated
from tests.iris.serve.office import Office, asking, office

pytestmark = pytest.mark.anyio


async def told(there: Office, who: str = "", limit: int = 0, before: int = 0) -> list[tuple[str, ...]]:
    answer = await there.cluster("root").audit(pb.AuditRequest(who=who, limit=limit, before=before))
    return [(one.who, one.what, one.target, one.outcome) for one in answer.entries]


async def test_every_call_that_changes_something_is_on_record(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        job = await there.jobs("ada").submit(asking("/ada/job"))
        with pytest.raises(Denied) as refused:
            await there.jobs("bob").cancel(pb.CancelRequest(job=job.id))
        assert refused.value.hint == "Ask ada or an administrator."
        await there.jobs("ada").cancel(pb.CancelRequest(job=job.id))
        with pytest.raises(Denied):
            await there.cluster("bob").drain(pb.DrainRequest(worker=joined.worker))
        await there.cluster("root").drain(pb.DrainRequest(worker=joined.worker))
        with pytest.raises(Error):
            await there.jobs("ada").submit(asking("no name"))
    async with office(tmp_path) as there:
        assert await told(there) == [
            ("ada", "Submit", "no name", "iris.name"),
            ("root", "Drain", joined.worker, "done"),
            ("bob", "Drain", joined.worker, "iris.admins_only"),
            ("ada", "Cancel", "/ada/job", "done"),
            ("bob", "Cancel", "/ada/job", "iris.not_yours"),
            ("ada", "Submit", "/ada/job", "done"),
            ("by-hand", "Join", "host", "done"),
        ]
        assert await told(there, who="bob", limit=1) == [("bob", "Drain", joined.worker, "iris.admins_only")]


async def test_a_call_that_a_role_may_not_make_is_on_record(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        for token in ("by-hand", joined.token):
            with pytest.raises(Denied):
                await there.jobs(token).submit(asking("/ada/job"))
            with pytest.raises(Denied):
                await there.cluster(token).revoke(pb.RevokeRequest(worker=joined.worker))
        with pytest.raises(Denied):
            await there.join("ada")
        with pytest.raises(Denied):
            await there.jobs("by-hand").list(pb.ListRequest())
    async with office(tmp_path) as there:
        assert await told(there) == [
            ("ada", "Join", "", "rpc.role"),
            (joined.worker, "Revoke", "", "rpc.role"),
            (joined.worker, "Submit", "", "rpc.role"),
            ("by-hand", "Revoke", "", "rpc.role"),
            ("by-hand", "Submit", "", "rpc.role"),
            ("by-hand", "Join", "host", "done"),
        ]


async def test_a_stranger_cannot_fill_the_record(tmp_path: Path):
    async with office(tmp_path) as there:
        for token in ("nobody's", "worker.worker-1.0000"):
            with pytest.raises(Unauthenticated):
                await there.join(token)
            with pytest.raises(Unauthenticated):
                await there.jobs(token).submit(asking("/ada/job"))
        assert await told(there) == []


async def test_a_question_is_not_on_record(tmp_path: Path):
    async with office(tmp_path) as there:
        request = asking("/ada/job")
        request.dry_run = True
        await there.jobs("ada").submit(request)
        await there.jobs("ada").list(pb.ListRequest())
        assert await told(there) == []


async def test_no_token_is_on_record(tmp_path: Path):
    async with office(tmp_path) as there:
        badge = there.slice("slice-1")
        joined = await there.join(badge, "slice-1")
        await there.parts.context.journal.wait_durable()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for token in (badge, joined.token, "a secret"):
        assert token.rpartition(".")[2].encode() not in kept


async def test_the_newest_are_kept_and_the_numbers_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(audit_rows, "AUDIT_ENTRIES_MAX", 3)
    for life in range(2):
        async with office(tmp_path) as there:
            for number in range(4):
                await there.jobs("ada").submit(asking(f"/ada/job-{life}-{number}"))
    async with office(tmp_path) as there:
        assert [target for _, _, target, _ in await told(there)] == [
            "/ada/job-1-3",
            "/ada/job-1-2",
            "/ada/job-1-1",
        ]
        assert there.parts.audit_log.last == 8
        assert [target for _, _, target, _ in await told(there, before=8)] == ["/ada/job-1-2", "/ada/job-1-1"]
