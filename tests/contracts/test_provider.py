"""What every cloud promises to whoever buys from it. A new provider adds a rig to `tests/capacity/clouds`."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace

import pytest

from neorion.capacity.provider import IntentId, MachineId, MachineState
from neorion.keel.base import Deadline, Denied, NoCapacity, NotFound, QuotaExceeded
from neorion.keel.clock import SystemIds
from tests.capacity.clouds.rigs import RIGS, Rig

pytestmark = pytest.mark.anyio


@pytest.fixture(params=sorted(RIGS))
async def rig(request: pytest.FixtureRequest) -> AsyncGenerator[Rig]:
    async with RIGS[request.param]() as found:
        yield found


async def test_a_machine_is_bought_as_it_was_ordered(rig: Rig):
    machine = await rig.provider.provision(rig.intent)
    assert machine.intent == rig.intent.id
    assert machine.owner == rig.intent.owner
    assert machine.instance_type == rig.intent.instance_type
    assert machine.state in (MachineState.PENDING, MachineState.RUNNING)
    assert await rig.provider.describe(machine.id) is not None


async def test_one_intent_buys_one_machine_however_often_it_is_asked(rig: Rig):
    first = await rig.provider.provision(rig.intent)
    again = await rig.provider.provision(rig.intent)
    assert again.id == first.id
    assert [one.id for one in await rig.provider.list(rig.intent.owner)] == [first.id]


async def test_another_intent_buys_another_machine(rig: Rig):
    first = await rig.provider.provision(rig.intent)
    other = await rig.provider.provision(replace(rig.intent, id=SystemIds().new(IntentId)))
    assert other.id != first.id


async def test_a_lost_answer_is_told_and_asking_again_finds_the_machine(rig: Rig):
    rig.lose_answers()
    with pytest.raises(Deadline) as lost:
        await rig.provider.provision(rig.intent)
    assert lost.value.code == "provider.unknown_outcome"
    rig.answer_again()
    machine = await rig.provider.provision(rig.intent)
    assert [one.id for one in await rig.provider.list(rig.intent.owner)] == [machine.id]


async def test_nobody_sees_the_machines_of_another_owner(rig: Rig):
    await rig.provider.provision(rig.intent)
    assert await rig.provider.list("navarch-b") == []


async def test_terminating_repeats_until_the_machine_is_gone(rig: Rig):
    machine = await rig.provider.provision(rig.intent)
    for _ in range(2):
        with suppress(NotFound):
            await rig.provider.terminate(machine.id)
    with suppress(NotFound):
        state = (await rig.provider.describe(machine.id)).state
        assert state in (MachineState.STOPPING, MachineState.GONE)
    assert await rig.provider.list(rig.intent.owner) == []


async def test_a_machine_that_never_was_is_not_found(rig: Rig):
    for verb in (rig.provider.describe, rig.provider.terminate):
        with pytest.raises(NotFound) as missing:
            await verb(MachineId("no-such-machine"))
        assert missing.value.code == "provider.no_machine"


async def test_no_capacity_is_told_with_its_scope(rig: Rig):
    rig.empty()
    with pytest.raises(NoCapacity) as none:
        await rig.provider.provision(rig.intent)
    assert none.value.scope


async def test_a_quota_that_is_used_up_is_told_apart(rig: Rig):
    rig.fill_quota()
    with pytest.raises(QuotaExceeded) as full:
        await rig.provider.provision(rig.intent)
    assert full.value.code == "provider.quota"


async def test_credentials_that_are_not_accepted_are_told_apart(rig: Rig):
    rig.lock_out()
    with pytest.raises(Denied) as denied:
        await rig.provider.list(rig.intent.owner)
    assert denied.value.code == "provider.not_allowed"
