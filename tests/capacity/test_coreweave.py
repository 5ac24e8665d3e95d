"""What is CoreWeave's own: pools that are judged, nodes that arrive later, and pools of others."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from msgspec import structs

from neorion.capacity.coreweave import CoreWeaveProvider
from neorion.capacity.coreweave.errors import refusal
from neorion.capacity.coreweave.nodepools import INTENT, NODE_POOL, OWNER, pool_of
from neorion.capacity.provider import Capability, Intent, IntentId, MachineId, MachineState
from neorion.keel.base import (
    Conflict,
    Deadline,
    Denied,
    Duration,
    Error,
    Invalid,
    NoCapacity,
    NotFound,
    QuotaExceeded,
    Retry,
)
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Added, MergePatch, UnknownKind
from neorion.keel.kube.core import NODE
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from tests.capacity.clouds.node_pools import H100, NodePoolRig, node_pools

pytestmark = pytest.mark.anyio

INTENT_1 = Intent(IntentId("buy-1"), "navarch-a", H100, "us-east-04")


@pytest.fixture
async def rig() -> AsyncGenerator[NodePoolRig]:
    async with node_pools() as found:
        yield found


def test_a_machine_is_a_pool_of_one_node_with_our_labels():
    labels = (("navarch.dev/pool", "training"), (OWNER, "somebody"), ("not a key", "x"), ("k", "not a value"))
    pool = pool_of(replace(INTENT_1, labels=labels))
    assert pool["metadata"] == {"name": "buy-1", "labels": {OWNER: "navarch-a", INTENT: "buy-1"}}
    assert pool["spec"]["targetNodes"] == 1
    assert pool["spec"]["nodeLabels"] == {"navarch.dev/pool": "training", OWNER: "navarch-a", INTENT: "buy-1"}


def test_spot_is_a_class_of_machines():
    assert pool_of(INTENT_1)["spec"]["computeClass"] == "default"
    assert pool_of(replace(INTENT_1, spot=True))["spec"]["computeClass"] == "spot"


@pytest.mark.parametrize(
    "changes", [{"zone": "a"}, {"reservation": "r"}, {"image": "i"}, {"startup": "#!/bin/sh"}]
)
async def test_what_a_pool_cannot_say_is_refused_before_anything_is_made(
    rig: NodePoolRig, changes: dict[str, object]
):
    with pytest.raises(Invalid):
        await rig.provider.provision(replace(rig.intent, **changes))
    assert (await rig.api.list(NODE_POOL)).items == []


async def test_an_instance_type_that_coreweave_does_not_know_is_refused(rig: NodePoolRig):
    with pytest.raises(Invalid, match="gd-9xh100"):
        await rig.provider.provision(replace(rig.intent, instance_type="gd-9xh100"))
    assert (await rig.api.list(NODE_POOL)).items == []


@pytest.mark.parametrize(("lever", "family"), [("empty", NoCapacity), ("fill_quota", QuotaExceeded)])
async def test_what_cannot_be_had_now_is_not_left_to_arrive_later(
    rig: NodePoolRig, lever: str, family: type[Error]
):
    getattr(rig, lever)()
    with pytest.raises(family):
        await rig.provider.provision(rig.intent)
    assert (await rig.api.list(NODE_POOL)).items == []


async def test_a_pool_that_nobody_judges_is_asked_about_again():
    """No player: CoreWeave's controller is down."""
    clock = SystemClock()
    api = MemoryApi(MemoryCluster(clock), clock)
    provider = CoreWeaveProvider("coreweave", api, patience=Duration.of(ms=50))
    for _ in range(2):
        with pytest.raises(Deadline, match="not judged"):
            await provider.provision(INTENT_1)
    assert [pool.meta.name for pool in (await api.list(NODE_POOL)).items] == ["buy-1"]


async def test_an_old_verdict_says_nothing_of_a_changed_pool(rig: NodePoolRig):
    await rig.provider.provision(rig.intent)
    pool = await rig.api.get(NODE_POOL, rig.intent.id)
    assert pool.says("Capacity") is not None
    newer = structs.replace(pool.meta, generation=pool.meta.generation + 1)
    assert structs.replace(pool, meta=newer).says("Capacity") is None


async def test_a_machine_is_known_by_its_pool_and_told_by_its_node(rig: NodePoolRig):
    bought = await rig.provider.provision(rig.intent)
    assert (bought.id, bought.name, bought.state) == (rig.intent.id, "", MachineState.PENDING)
    async with rig.api.watch(NODE) as events:
        async for event in events:
            if isinstance(event, Added):
                break
    node = f"{rig.intent.id}-0"
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        "nodeInfo": {"systemUUID": "host-7"},
    }
    await rig.api.patch(NODE, node, MergePatch({"status": status}), subresource="status")
    machine = await rig.provider.describe(bought.id)
    assert (machine.name, machine.private_address, machine.host) == (node, "10.0.0.7", "host-7")
    assert machine.state is MachineState.RUNNING
    assert await rig.provider.list("navarch-a") == [machine]


async def test_a_pool_of_somebody_else_is_neither_taken_nor_touched(rig: NodePoolRig):
    theirs = pool_of(replace(rig.intent, owner="navarch-b"))
    await rig.api.create(NODE_POOL, theirs)
    with pytest.raises(Invalid, match="another owner"):
        await rig.provider.provision(rig.intent)
    await rig.api.create(NODE_POOL, {"metadata": {"name": "training"}, "spec": theirs["spec"]})
    for verb in (rig.provider.describe, rig.provider.terminate):
        with pytest.raises(NotFound):
            await verb(MachineId("training"))
    assert len((await rig.api.list(NODE_POOL)).items) == 2


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (UnknownKind("the server could not find the requested resource"), Invalid),
        (
            Denied("kube.denied", "admission webhook denied the request: Quota exceeded for H100"),
            QuotaExceeded,
        ),
        (Denied("kube.denied", "nodepools is forbidden"), Denied),
        (Retry("kube.throttled", "too many requests", after=Duration.of(seconds=3)), Retry),
        (Retry("kube.unavailable", "the server is starting"), Deadline),
        (Conflict("kube.conflict", "the object has been modified"), Deadline),
        (Invalid("kube.invalid", "spec.instanceType is required"), Invalid),
    ],
)
def test_each_refusal_gets_its_family(error: Error, family: type[Error]):
    told = refusal("coreweave", "us-east-04", error)
    assert type(told) is family
    assert told.code.startswith("provider.")


def test_machines_cannot_be_rebooted_from_here():
    assert frozenset({Capability.SPOT}) == CoreWeaveProvider.capabilities
