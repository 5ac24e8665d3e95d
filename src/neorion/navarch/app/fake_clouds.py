"""Fake clouds in this process, with a real agent on each of their machines."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeMachine, FakeProvider, Fault
from neorion.keel.base import Error
from neorion.keel.clock import Clock, Ids, Rng
from neorion.keel.rpc import Channel
from neorion.keel.telemetry import logger
from neorion.navarch.adapters.config_file.sections import FakeFault, ProviderModel
from neorion.navarch.adapters.probes import FakeProbe
from neorion.navarch.agent import Agent, HostIdentity

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class FakeCloudSetup:
    """A fake cloud and what is to go wrong in it."""

    provider: FakeProvider
    faults: tuple[FakeFault, ...]
    gpus: int


def fake(name: str, section: ProviderModel, clock: Clock, rng: Rng) -> FakeCloudSetup:
    behaviour = FakeCloudOptions(lost=section.lost_answers or 0.0)
    if section.boot is not None:
        behaviour.boot = section.boot
    return FakeCloudSetup(
        FakeProvider(name, FakeCloud(clock, rng, behaviour, name=name)),
        section.faults,
        section.gpu_count or 0,
    )


async def run_fake_agents(
    one: FakeCloudSetup, dial: Callable[[str | None], Channel], token: str, ids: Ids
) -> None:
    """Lets an agent live on every machine of a fake cloud."""
    await one.provider.cloud.run(partial(_run_fake_agent, one, dial, token, ids))


async def _run_fake_agent(
    one: FakeCloudSetup, dial: Callable[[str | None], Channel], token: str, ids: Ids, machine: FakeMachine
) -> None:
    cloud = one.provider.cloud
    who = HostIdentity(machine.intent.id, machine=machine.id, instance_type=machine.intent.instance_type)
    agent = Agent(who, FakeProbe(machine, cloud.clock, gpus=one.gpus), dial, cloud.clock, ids, cloud.rng)
    number = int(machine.id.rpartition("-")[2])
    async with anyio.create_task_group() as tasks:
        for fault in one.faults:
            if fault.machine == number:
                tasks.start_soon(_inject_fault, cloud, machine, fault)
        try:
            await agent.run(token)
        except Error as error:
            log.failure("the agent of a fake machine gave up", error, machine=machine.id)
        tasks.cancel_scope.cancel()


async def _inject_fault(cloud: FakeCloud, machine: FakeMachine, fault: FakeFault) -> None:
    await cloud.clock.sleep(fault.after)
    machine.faults.put_nowait(Fault(fault.kind, fault.xid, fault.gpu, "ordered in the configuration"))
