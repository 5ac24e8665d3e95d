"""A task finds its worker's token in a file and speaks as the worker: it ends no other user's attempt and sends it no value."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from neorion.iris.client import IrisClient
from neorion.iris.controllers.worker_tokens import WorkerTokens
from neorion.iris.model import AttemptId
from neorion.iris.model.gen import iris_pb as pb
from tests.iris.processes import cluster
from tests.iris.serve.office import asking, office

pytestmark = [pytest.mark.attack("task-identity"), pytest.mark.timeout(240)]


def impostor() -> Callable[[str, str, str], list[str]]:
    """A function that travels to a task by value."""

    def speak_as_the_worker(folder: str, victim: str, key: str) -> list[str]:
        """Reports the victim's attempt as ended, with a value that runs code where it is read; what is to be forgotten."""
        import hashlib  # noqa: PLC0415 -- it runs in a task
        import os  # noqa: PLC0415 -- as above
        from pathlib import Path  # noqa: PLC0415 -- as above

        import anyio  # noqa: PLC0415 -- as above

        from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above
        from neorion.iris.model.gen.iris_client import WorkerServiceClient  # noqa: PLC0415 -- as above
        from neorion.keel.clock import SystemIds  # noqa: PLC0415 -- as above
        from neorion.keel.rpc import PinnedToken, connect  # noqa: PLC0415 -- as above

        badge = (Path(folder) / "worker.badge").read_text()
        pin = PinnedToken.parse(os.environ["IRIS_TOKEN"]).pin
        body = b"cos\nsystem\n(S'touch /tmp/never'\ntR."
        value = pb.Blob(digest=hashlib.sha256(body).hexdigest(), body=body)
        seen = pb.Seen(
            attempt=victim, phase="ended", kind="exit", result=value, result_bytes=len(body), report_key=key
        )

        async def report() -> list[str]:
            token = str(PinnedToken(pin, badge))
            async with connect(os.environ["IRIS_CONTROLLER"], ids=SystemIds(), token=token) as channel:
                calls = channel.client(WorkerServiceClient)
                request = pb.ReportRequest(worker=os.environ["IRIS_WORKER_ID"], seen=[seen])
                return list((await calls.report(request)).forget)

        return anyio.run(report)

    return speak_as_the_worker


@pytest.mark.parametrize("key", ["", "0" * 64])
def test_a_task_that_speaks_as_its_worker_ends_no_other_attempt(tmp_path: Path, key: str) -> None:
    with cluster(tmp_path, workers=1) as (found, ann), IrisClient.remote(found.url, user="bob") as bob:
        gate = tmp_path / "gate"
        mine = bob.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", "mine")
        while not (attempts := [one for one in bob.attempts(mine, 0) if one.state == "running"]):
            pass
        (victim,) = attempts
        folder = str(found.workers[0].folder)
        attack = ann.submit(impostor(), "attack", args=(folder, victim.id, key))
        assert ann.wait(attack, timeout=120) == [victim.id]
        assert mine.status().state == "running"
        gate.touch()
        bob.wait(mine, timeout=120)
        assert [one.state for one in bob.attempts(mine, 0)] == ["succeeded"]


def accept(*_: object) -> bool:
    return True


@pytest.mark.anyio
@pytest.mark.parametrize("checked", [True, False])
async def test_without_the_keys_such_a_report_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, checked: bool
) -> None:
    if not checked:
        monkeypatch.setattr(WorkerTokens, "check_report", accept)
    async with office(tmp_path) as there:
        joined = await there.join("by-hand")
        await there.jobs("bob").submit(asking("/bob/job"))
        task = await there.started("/bob/job")
        value = pb.Blob(digest=hashlib.sha256(b"forged").hexdigest(), body=b"forged")
        seen = pb.Seen(attempt=task.attempt, phase="ended", kind="exit", result=value, result_bytes=6)
        worker = there.worker(joined.token)
        for key in ("", "0" * 64, there.report_key(AttemptId("attempt-1")), "ä"):
            seen.report_key = key
            await worker.report(pb.ReportRequest(worker=joined.worker, seen=[seen]))
        state = (await there.jobs("bob").get(pb.GetRequest(job="/bob/job"))).state
        assert state == ("running" if checked else "succeeded")
