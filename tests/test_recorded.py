"""Bytes that an older Neorion wrote are still understood. The files in `recorded` are never written again."""

import gzip
import pickle
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, msgpack

from neorion.drydock.host import UndoLog
from neorion.drydock.host.undo_log import HostChange
from neorion.iris.adapters.platforms.local.slice_store import SliceStore
from neorion.iris.adapters.runtimes.process import protocol, result_file
from neorion.iris.adapters.runtimes.process.forkserver.exit_log import ExitLog as EndsOfAttempts
from neorion.iris.app.standby import SCHEMA
from neorion.iris.client import Args, AsyncIrisClient, IrisClient, Job
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model import AttemptId, JobId, SliceId, StopCause, WorkerId
from neorion.iris.model import record as iris_record
from neorion.iris.model.spec import FunctionCall, PriorityBand
from neorion.iris.ports import ExitKind, Phase
from neorion.iris.state import attempts_of, audit_entries_before, load
from neorion.iris.state.codec import decode, encode
from neorion.keel.base import Instant, NoCapacity
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.store import Store, migrations_in, open_store
from neorion.navarch import state as navarch_state
from neorion.navarch.agent.outbox import Outbox
from neorion.navarch.agent.state_dir import AgentCredentials, CredentialFile
from neorion.navarch.app.control_plane import MIGRATIONS
from neorion.navarch.model import NodeId, RepairStep
from neorion.navarch.model import record as navarch_record
from neorion.navarch.state import codec as navarch_codec

pytestmark = pytest.mark.anyio
RECORDED = Path(__file__).parent / "recorded"
WHEN = Instant(1_700_000_000_000_000_001)
IRIS_TABLES: dict[str, type[Any]] = {
    "job": iris_record.Job,
    "task": iris_record.Task,
    "attempt": iris_record.Attempt,
    "worker": iris_record.Worker,
    "slice": iris_record.Slice,
    "audit": iris_record.AuditEntry,
}
NAVARCH_TABLES: dict[str, type[Any]] = {
    "node": navarch_record.Node,
    "purchase": navarch_record.Purchase,
    "repair": navarch_record.Repair,
    "pool": navarch_record.PoolState,
    "trouble": navarch_record.FailureStreak,
    "installation": navarch_codec.Installation,
}


def read(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def unpickled(name: str) -> Any:
    return pickle.loads(read(name))  # noqa: S301 -- our own files


@asynccontextmanager
async def iris_store(folder: Path) -> AsyncGenerator[Store]:
    (folder / "iris.db").write_bytes(gzip.decompress(read("iris.db.gz")))
    migrations = migrations_in(SCHEMA)
    async with open_store(folder / "iris.db", migrations=migrations, clock=SystemClock()) as store:
        yield store


@asynccontextmanager
async def navarch_store(folder: Path) -> AsyncGenerator[Store]:
    (folder / "navarch.db").write_bytes(gzip.decompress(read("navarch.db.gz")))
    async with open_store(folder / "navarch.db", migrations=MIGRATIONS, clock=SystemClock()) as store:
        yield store


async def test_a_controller_starts_from_an_old_store(tmp_path: Path):
    async with iris_store(tmp_path) as store:
        context = ControllerContext.for_store(store, SystemClock(), SystemIds(), system_rng())
        await load(store, context.cluster)
        job, child = context.cluster.jobs[JobId("job-1")], context.cluster.jobs[JobId("job-2")]
        assert (job.spec.name, job.spec.entry, job.spec.band) == (
            "/ada/call",
            FunctionCall(iris_record.Digest("f" * 64)),
            PriorityBand.PRODUCTION,
        )
        assert (child.parent, child.ending.code) == ("job-1", 3)
        first, second = await attempts_of(store, "job-1", 0)
        assert (first.ending.message, second.secret) == ("three", "a secret")
        assert context.cluster.attempts[AttemptId("second")] == second
        assert context.cluster.workers[WorkerId("w")].attributes == {"zone": "ü"}
        assert context.cluster.slices[SliceId("s")].revoked
        (deed,) = await audit_entries_before(store, 2, 10)
        assert (deed.who, deed.what, deed.when) == ("ada", "submit", WHEN)


async def test_records_of_iris_are_written_as_they_always_were(tmp_path: Path):
    async with iris_store(tmp_path) as store:
        for table, kind in IRIS_TABLES.items():
            rows = await store.read(lambda tx, table=table: tx.execute(f"SELECT body FROM {table}"))  # noqa: S608 -- a name from above
            assert rows
            for (body,) in rows:
                assert msgpack.decode(encode(decode(kind, bytes(body)))) == msgpack.decode(bytes(body))


async def test_a_control_plane_starts_from_an_old_store(tmp_path: Path):
    async with navarch_store(tmp_path) as store:
        journal = navarch_state.Journal(store, SystemClock(), system_rng())
        fleet = navarch_state.FleetState(journal)
        await navarch_state.load(store, fleet, WHEN)
        node = NodeId("node-1")
        assert fleet.nodes[node].place.price == 2.5
        assert fleet.open_repairs[node].step is RepairStep.DRAINING
        assert [event.signature for event in fleet.events[node]] == ["xid 79"]
        assert (await navarch_state.installation(store, SystemIds())).secret == "a secret of many letters"
        ((_, line),) = await navarch_state.story_of(store, node, 10)
        assert (line.event, line.data) == ("node.cordoned", {"why": "xid 79"})


async def test_records_of_navarch_are_written_as_they_always_were(tmp_path: Path):
    async with navarch_store(tmp_path) as store:
        for table, kind in NAVARCH_TABLES.items():
            rows = await store.read(lambda tx, table=table: tx.execute(f"SELECT body FROM {table}"))  # noqa: S608 -- a name from above
            assert rows
            for (body,) in rows:
                again = navarch_codec.encode(navarch_codec.decode(kind, bytes(body)))
                assert msgpack.decode(again) == msgpack.decode(bytes(body))


def test_an_old_fork_server_and_a_new_worker_understand_each_other():
    requests = list(protocol.requests().feed(read("forkserver.requests")))
    assert [type(one).__struct_config__.tag for one in requests] == ["Start", "Stop", "Forget", "Renew"]
    assert protocol.frame(requests[:3]) + protocol.frame(requests[3:]) == read("forkserver.requests")
    done, told, replaced = protocol.reports().feed(read("forkserver.reports"))
    assert isinstance(done, protocol.Reply)
    assert done.refusal is protocol.Refusal.NO_DISK
    assert isinstance(told, protocol.StatusUpdate)
    assert told.states[0].ended == protocol.ExitInfo(ExitKind.EXIT, 3, "three", True, 7, 9)
    assert told.states[1].phase is next(iter(Phase))
    assert isinstance(replaced, protocol.ConnectionReplaced)
    assert protocol.frame([done, told, replaced]) == read("forkserver.reports")
    (job,) = protocol.jobs().feed(read("forkserver.jobs"))
    assert (job.argv, job.pool) == (["echo", "ä"], "warm")


def test_the_ends_that_an_old_fork_server_wrote_down_are_known(tmp_path: Path):
    path = tmp_path / "ends"
    path.write_bytes(read("forkserver.journal"))
    ends = EndsOfAttempts(path).ends
    assert ends["attempt-1"] == protocol.ExitInfo(ExitKind.EXIT, 3, "three", True, 7, 9)
    assert path.read_bytes() == read("forkserver.journal")


def test_what_an_old_client_pickled_still_runs():
    each = unpickled("map.pickle")
    (start, items), named = unpickled("map-input.pickle")
    assert isinstance(items[1], Args)
    assert each(start, items, **named) == [2, 6]
    cached, _ = unpickled("cached.pickle")
    assert (cached(3), cached(3), cached.cache_info().hits) == (-3, -3, 1)
    assert unpickled("client.pickle") == (IrisClient, AsyncIrisClient, Job)


def test_old_results_are_still_loaded():
    assert result_file.load(RECORDED / "value.result") == {"answer": 42}
    with pytest.raises(NoCapacity, match="None is left") as caught:
        result_file.load(RECORDED / "error.result")
    assert (caught.value.code, caught.value.hint) == ("fake.none_left", "Ask for less.")


def test_the_slices_of_an_old_controller_are_found_again(tmp_path: Path):
    shutil.copytree(RECORDED / "slices", tmp_path / "slices")
    records = SliceStore(tmp_path / "slices")
    (found,) = records.all()
    assert (found.order.token, found.order.shape.cpu_milli, found.created) == ("a token", 4000, WHEN)
    assert [birth.pid for birth in found.births] == [7, 9]
    records.save(found)
    (file,) = (tmp_path / "slices").glob("*.json")
    assert json.decode(file.read_bytes()) == json.decode((RECORDED / "slices" / file.name).read_bytes())


async def test_an_agent_goes_on_where_an_older_one_stopped(tmp_path: Path):
    for name in ("papers.json", "outbox.jsonl"):
        shutil.copy(RECORDED / name, tmp_path)
    assert CredentialFile.kept_in(tmp_path / "papers.json", SystemIds()).papers == AgentCredentials(
        "a secret", "a token"
    )
    assert json.decode((tmp_path / "papers.json").read_bytes()) == json.decode(read("papers.json"))
    waiting = await Outbox("boot-2", tmp_path / "outbox.jsonl").next_batch()
    assert (waiting.boot, waiting.first, [event.gpu for event in waiting.events]) == ("boot-1", 2, [1, 2])


def test_what_an_old_cluster_changed_on_its_machine_is_known():
    assert UndoLog(RECORDED).effects() == [HostChange("mount", "/a b"), HostChange("netns", "n1")]


async def test_why_an_attempt_was_stopped_is_remembered(tmp_path: Path):
    async with iris_store(tmp_path) as store:
        _, second = await attempts_of(store, "job-1", 0)
        assert (second.stop_cause, second.rendezvous) == (list(StopCause)[1], "host:4001")
