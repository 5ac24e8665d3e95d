"""A value that is refused is the end of its own attempt, and of nothing else."""

from pathlib import Path
from typing import NoReturn

import anyio
import pytest

from neorion.iris.adapters.blobs.folder import FolderBlobs
from neorion.iris.controllers import blob_upload
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.spec import Command
from neorion.iris.ports import AttemptSpec
from neorion.iris.testing.memory_runtime import ScriptedOutcome
from neorion.keel.base import Denied
from tests.iris.serve.office import asking, office, working

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


def fate(order: AttemptSpec) -> ScriptedOutcome:
    """A task writes a value of as many bytes as its command says."""
    assert isinstance(order.entry, Command)
    return ScriptedOutcome(value=b"x" * int(order.entry.argv[0]))


async def deny(*_: object) -> NoReturn:
    raise Denied("iris.blobs_denied", "The bucket does not let us in.")


@pytest.mark.parametrize(
    ("size", "denied", "says"),
    [
        (3 * MIB, False, "A blob may have at most 2097152 bytes."),
        (3 * MIB // 2, True, "The bucket does not let us in."),
        (MIB // 2, True, "The bucket does not let us in."),
    ],
    ids=["too large", "large and denied", "small and denied"],
)
async def test_a_value_that_is_refused_fails_its_attempt_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, says: str, *, denied: bool
):
    monkeypatch.setattr(blob_upload, "BLOB_BYTES_MAX", 2 * MIB)
    if denied:
        monkeypatch.setattr(FolderBlobs, "put", deny)
    async with office(tmp_path) as there, working(there, tmp_path, fate):
        jobs = there.jobs("ada")
        refused = await jobs.submit(asking("/ada/refused", argv=(str(size),)))
        kept = await jobs.submit(asking("/ada/kept", argv=("5",)))
        with anyio.fail_after(60):
            end = await jobs.wait(pb.WaitRequest(job=refused.id, timeout_ms=60_000))
            other = await jobs.wait(pb.WaitRequest(job=kept.id, timeout_ms=60_000))
        assert [(task.state, task.ending and task.ending.message) for task in end.tasks] == [("failed", says)]
        assert [task.state for task in other.tasks] == ["succeeded"]
