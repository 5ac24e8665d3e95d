"""Verbs on servers, and waiting for them, on a cluster in memory whose operator is the test."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from neorion.devservers.client import (
    CreateRequest,
    DevServerApi,
    Progress,
    obstacle,
    plan_move,
    until_stopped,
    wait,
    wait_deleted,
    wait_ready,
)
from neorion.devservers.decide import SERVER_LABEL, STOPPED_BECAUSE, Observed, decide, expiry
from neorion.devservers.model import DevServerStatus, FlavorLimits
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS, DevServerObject
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.base import (
    Conflict,
    Deadline,
    Duration,
    Error,
    NoCapacity,
    NotFound,
    QuotaExceeded,
    Terminal,
)
from neorion.keel.clock import SystemClock
from neorion.keel.kube import JsonPatch, MergePatch
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import EVENT, POD, Pod
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

NS = "dev-ann"
SHORT = Duration.of(ms=200)
RICH = replace(FLAVOR, limits=FlavorLimits(max_ttl="4h", max_per_user=1))


@pytest.fixture
async def fleet() -> DevServerApi:
    clock = SystemClock()
    api = MemoryApi(MemoryCluster(clock), clock)
    for name, spec in (("cpu-small", replace(FLAVOR, default=True)), ("cpu-large", FLAVOR), ("rich", RICH)):
        await api.create(DEVSERVERFLAVORS, a_flavor(spec, name))
    # The double keeps the promises of the port, which is all that these verbs use of a client.
    return DevServerApi(cast("Client", api), NS, clock)


async def operate(
    fleet: DevServerApi, name: str, *, pod: Pod | None = None, known: bool = True
) -> DevServerObject:
    """Writes the status that the operator would write."""
    server = await fleet.server(name)
    flavor = a_flavor(name=server.spec.flavor) if known else None
    # A pod that is older than its server would be that of another one.
    pods = (replace(pod, meta=replace(pod.meta, created=server.meta.created)),) if pod else ()
    seen = Observed(server, flavor, a_claim(), pods=pods)
    status = msgspec.to_builtins(decide(seen, SETTINGS, fleet.now()).status)
    whole = JsonPatch([{"op": "add", "path": "/status", "value": status}])
    return await fleet.client.patch(DEVSERVERS, name, whole, NS, "status")


async def change(fleet: DevServerApi, name: str, **spec: Any) -> None:
    await fleet.client.patch(DEVSERVERS, name, MergePatch({"spec": spec}), NS)


async def test_a_server_is_made_on_the_default_flavor_with_what_was_asked_for(fleet: DevServerApi):
    made = await fleet.create(
        CreateRequest(
            name="mydev",
            image="pytorch",
            home_size="5Gi",
            time="150m",
            shared_volume="team.data",
            owner="ann",
        )
    )
    spec = made.spec
    assert (spec.flavor, spec.image, spec.persistent_home_size) == ("cpu-small", "pytorch", "5Gi")
    assert (spec.lifecycle.time_to_live, spec.shared_volume_claim_name, spec.owner) == (
        "2h30m",
        "team.data",
        "ann",
    )


async def test_limits_of_a_flavor_are_checked_before_anything_is_made(fleet: DevServerApi):
    with pytest.raises(QuotaExceeded, match="rich allows 4h at a time"):
        await fleet.create(CreateRequest(name="long", flavor="rich", time="5h"))
    await fleet.create(CreateRequest(name="first", flavor="rich", time="4h"))
    with pytest.raises(QuotaExceeded, match="rich allows 1 servers") as refused:
        await fleet.create(CreateRequest(name="second", flavor="rich"))
    assert refused.value.hint == "Delete one you have: first."
    assert [one.meta.name for one in await fleet.servers()] == ["first"]


async def test_each_step_is_told_and_the_last_one_ends_the_wait(fleet: DevServerApi):
    await fleet.create(CreateRequest(name="mydev"))
    told: list[list[str]] = []
    seen = anyio.Event()

    def tell(progress: Progress) -> None:
        told.append([step.name for step in progress.steps if step.done])
        seen.set()

    async with anyio.create_task_group() as group:
        group.start_soon(wait_ready, fleet, "mydev", tell)
        await seen.wait()
        await operate(fleet, "mydev")
        await operate(fleet, "mydev", pod=a_pod())
    assert told == [[], ["volume"], ["volume", "quota", "scheduled", "image", "ready"]]


async def _refused(fleet: DevServerApi) -> None:
    await operate(fleet, "mydev", known=False)


async def _stopped(fleet: DevServerApi) -> None:
    await fleet.stop("mydev")


async def _deleted(fleet: DevServerApi) -> None:
    await fleet.delete("mydev")


@pytest.mark.parametrize(
    ("happens", "family", "code"),
    [
        (_refused, Terminal, "devservers.failed"),
        (_stopped, Conflict, "devservers.stopped"),
        (_deleted, NotFound, "devservers.deleted"),
    ],
)
async def test_what_ends_all_hope_ends_the_wait(
    fleet: DevServerApi, happens: Callable[[DevServerApi], Any], family: type[Error], code: str
):
    await fleet.create(CreateRequest(name="mydev"))
    await happens(fleet)
    with pytest.raises(family) as ended:
        await wait_ready(fleet, "mydev")
    assert ended.value.code == code


async def test_a_change_that_is_taken_back_is_no_success(fleet: DevServerApi):
    await fleet.create(CreateRequest(name="mydev"))
    await operate(fleet, "mydev", pod=a_pod())
    with pytest.raises(NoCapacity, match="it is on cpu-small again"):
        await wait_ready(fleet, "mydev", flavor="cpu-large")


async def test_a_change_is_done_when_the_operator_says_so_and_not_before(fleet: DevServerApi):
    await fleet.create(CreateRequest(name="mydev"))
    await operate(fleet, "mydev", pod=a_pod())
    await change(fleet, "mydev", flavor="cpu-large")
    await operate(fleet, "mydev", pod=a_pod())
    told: list[Progress] = []
    with pytest.raises(Deadline, match="it is not on cpu-large yet"):
        await wait_ready(fleet, "mydev", told.append, patience=SHORT, flavor="cpu-large")
    assert not any(step.done for progress in told for step in progress.steps)
    await operate(fleet, "mydev", pod=a_pod())
    assert (await wait_ready(fleet, "mydev", flavor="cpu-large")).spec.flavor == "cpu-large"


async def test_a_change_that_is_held_ends_the_wait_with_the_reason(fleet: DevServerApi):
    await fleet.create(CreateRequest(name="mydev"))
    await operate(fleet, "mydev", pod=a_pod())
    await change(fleet, "mydev", flavor="cpu-large")
    server = await fleet.server("mydev")
    held = {"type": "Resizing", "status": "False", "reason": "QuotaShort", "message": "The quota is short."}
    status = {"observedGeneration": server.meta.generation, "conditions": [held]}
    await fleet.client.patch(DEVSERVERS, "mydev", MergePatch({"status": status}), NS, "status")
    with pytest.raises(NoCapacity, match="The quota is short") as ended:
        await wait_ready(fleet, "mydev", flavor="cpu-large")
    assert ended.value.code == "devservers.held"


async def test_a_wait_that_is_over_says_what_it_waited_for(fleet: DevServerApi):
    await fleet.create(CreateRequest(name="mydev"))
    with pytest.raises(Deadline, match="No operator has looked at mydev"):
        await wait_ready(fleet, "mydev", patience=SHORT)
    await operate(fleet, "mydev")
    with pytest.raises(Deadline, match="a node is being found"):
        await wait_ready(fleet, "mydev", patience=SHORT)
    with pytest.raises(Deadline):
        await until_stopped(fleet, "mydev", patience=SHORT)
    with pytest.raises(Deadline):
        await wait_deleted(fleet, "mydev", patience=SHORT)


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"timeToLive": "8h"},
        {"timeToLive": "1h", "extendedUntil": "2999-01-01T00:00:00Z"},
        {"expirationTime": "2020-01-01T00:00:00Z"},
        {"keepUntil": "2100-01-01T00:00:00Z"},
    ],
    ids=["none", "a longer one", "an extended one", "one that is over", "one that was held off"],
)
async def test_a_start_with_a_time_gives_exactly_that_whatever_end_there_was(
    fleet: DevServerApi, before: dict[str, str]
):
    await fleet.create(CreateRequest(name="mydev"))
    await change(fleet, "mydev", lifecycle=before, running=False)
    started = await fleet.start("mydev", timedelta(hours=2))
    assert started.spec.running
    assert expiry(started.spec.lifecycle, CREATED, FlavorLimits()) == CREATED + timedelta(hours=2)
    assert started.spec.lifecycle.keep_until is None


async def test_a_start_with_a_time_neither_shortens_what_runs_nor_passes_the_flavors_maximum(
    fleet: DevServerApi,
):
    await fleet.create(CreateRequest(name="mydev", flavor="rich", time="4h"))
    with pytest.raises(Conflict, match="mydev runs already") as refused:
        await fleet.start("mydev", timedelta(hours=1))
    assert refused.value.hint == "Give it more time: devctl extend mydev --time 1h"
    await fleet.stop("mydev")
    with pytest.raises(QuotaExceeded, match="rich allows 4h at a time"):
        await fleet.start("mydev", timedelta(hours=5))
    assert not (await fleet.server("mydev")).spec.running


async def test_who_stops_and_starts_a_server_takes_the_operators_mark_away(fleet: DevServerApi):
    await fleet.create(CreateRequest(name="mydev"))
    mark = {"metadata": {"annotations": {STOPPED_BECAUSE: "Idle"}}}
    await fleet.client.patch(DEVSERVERS, "mydev", MergePatch(mark), NS)
    stopped = await fleet.stop("mydev")
    assert (stopped.spec.running, STOPPED_BECAUSE in stopped.meta.annotations) == (False, False)
    await operate(fleet, "mydev")
    await until_stopped(fleet, "mydev")
    assert (await fleet.start("mydev")).spec.running


async def test_a_move_says_what_it_does_before_it_is_made(fleet: DevServerApi):
    await fleet.create(CreateRequest(name="mydev"))
    pod = a_pod(replace(FLAVOR, node_selector={"zone": "a"}))
    labelled = replace(pod, meta=replace(pod.meta, labels={SERVER_LABEL: "mydev"}))
    await fleet.client.create(POD, labelled)
    move = await plan_move(fleet, "mydev", "cpu-large")
    assert move.restarts
    assert "its home and its volumes stay" in move.sentence
    await fleet.stop("mydev")
    assert "counts from its next start" in (await plan_move(fleet, "mydev", "cpu-large")).sentence
    with pytest.raises(Conflict, match="mydev is on cpu-small already"):
        await plan_move(fleet, "mydev", "cpu-small")


async def complain(fleet: DevServerApi, kind: str, name: str, second: int, note: str) -> None:
    event = {
        "metadata": {"name": f"{name}.{second}", "namespace": NS},
        "regarding": {"kind": kind, "name": name},
        "eventTime": f"2026-11-16T08:00:0{second}.000000Z",
        "type": "Warning",
        "note": note,
    }
    await fleet.client.create(EVENT, event)


async def test_events_are_those_of_the_server_and_not_of_one_with_a_longer_name(fleet: DevServerApi):
    parts = {
        "DevServer": ("mydev", "mydev-b"),
        "Deployment": ("mydev", "mydev-b"),
        "ReplicaSet": ("mydev-7fb68f79c", "mydev-b-7fb68f79c"),
        "Pod": ("mydev-7fb68f79c-fpdmh", "mydev-b-7fb68f79c-fpdmh"),
        "PersistentVolumeClaim": ("mydev-home", "mydev-b-home"),
    }
    for number, (kind, names) in enumerate(parts.items()):
        for name in names:
            await complain(fleet, kind, name, number, f"about {name}")
    told = [one.regarding.name for one in await fleet.events("mydev")]
    assert told == [mine for mine, _ in parts.values()]
    assert await fleet.warning(a_server()) == "about mydev-home."


async def test_a_complaint_counts_since_the_last_start_and_that_of_the_volume_before_that_of_the_pod(
    fleet: DevServerApi,
):
    def started(second: int) -> DevServerObject:
        return a_server(status=DevServerStatus(running_since=CREATED + timedelta(seconds=second)))

    await complain(fleet, "PersistentVolumeClaim", "mydev-home", 3, "no such class.")
    unbound = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"
    await complain(fleet, "Pod", "mydev-7fb68f79c-fpdmh", 5, unbound)
    told = [await fleet.warning(started(second)) for second in (3, 4, 6)]
    assert told == ["no such class.", f"{unbound}.", ""]


async def test_who_waits_hears_what_only_events_tell(fleet: DevServerApi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wait, "EVENT_POLL", Duration.of(ms=1))
    await fleet.create(CreateRequest(name="mydev"))
    waiting = await operate(fleet, "mydev")
    assert obstacle(waiting) == ""
    since = waiting.status.running_since
    assert since is not None
    event = {
        "metadata": {"name": "x", "namespace": NS},
        "regarding": {"kind": "PersistentVolumeClaim", "name": "mydev-home"},
        "eventTime": since.isoformat(),
        "type": "Warning",
        "note": "the disk is elsewhere",
    }
    await fleet.client.create(EVENT, event)
    told: list[str] = []
    with pytest.raises(Deadline, match="the disk is elsewhere"):
        await wait_ready(fleet, "mydev", lambda progress: told.append(progress.obstacle), SHORT)
    assert "the disk is elsewhere." in told
