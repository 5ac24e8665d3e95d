"""The agent's own loop against a real control plane in this process, with a probe that a test moves."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from neorion.capacity.fake import FakeProvider
from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration, Error, Instant, Retry, Terminal
from neorion.keel.clock import SystemClock, SystemIds, seeded_rng
from neorion.navarch.agent import Agent, AgentState, HostIdentity
from neorion.navarch.model import EventKind, HealthEvent, Node, NodeId, NodeState, RepairStep
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import Timing
from neorion.navarch.ports import Gpu
from neorion.navarch.serve.authentication import TOKEN_LIFE
from neorion.navarch.testing import spec
from tests.navarch.plane import JOIN, Running, running

pytestmark = pytest.mark.anyio
QUICK = Timing(heartbeat=Duration.of(ms=20), silence=Duration.of(minutes=5))


@dataclass(slots=True)
class Bench:
    """A machine on a test bench: what it has, what it sees, what was done to it."""

    count: int = 8
    blind: bool = False
    refuses: Error | None = None
    events: "asyncio.Queue[HealthEvent]" = field(default_factory=asyncio.Queue)
    treated: list[tuple[Remedy, int]] = field(default_factory=list[tuple[Remedy, int]])
    looks: "asyncio.Queue[None]" = field(default_factory=asyncio.Queue)
    testable: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.testable.set()

    async def gpus(self) -> Sequence[Gpu]:
        self.looks.put_nowait(None)
        if self.blind:
            raise Retry("probe.nvml", "NVML does not answer.")
        return [Gpu(index) for index in range(self.count)]

    async def watch(self, tell: Callable[[HealthEvent], None], every: Duration) -> None:
        del every
        while True:
            tell(await self.events.get())

    async def self_test(self) -> bool:
        await self.testable.wait()
        return True

    async def treat(self, remedy: Remedy, gpu: int) -> None:
        self.treated.append((remedy, gpu))
        if self.refuses is not None:
            raise self.refuses

    def see(self, code: int) -> None:
        self.events.put_nowait(HealthEvent(SystemClock().now(), EventKind.XID, 3, xid=code))


class Later(SystemClock):
    """The wall clock of a day after tomorrow."""

    def now(self) -> Instant:
        return SystemClock.now(self) + TOKEN_LIFE * 2


def agent_of(it: Running, node: Node, bench: Bench) -> Agent:
    return Agent(HostIdentity(node.machine), bench, it.dial, SystemClock(), SystemIds(), seeded_rng(1))


@asynccontextmanager
async def living(
    it: Running, node: Node, bench: Bench, memory: AgentState | None = None
) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent_of(it, node, bench).run, JOIN, memory)
        yield
        tasks.cancel_scope.cancel()


def seen(it: Running, node: Node, *codes: int) -> Callable[[], Awaitable[bool]]:
    async def so() -> bool:
        found = it.plane.fleet.context.state.events.get(node.id, ())
        return [event.xid for event in found] == list(codes)

    return so


async def booted(it: Running) -> Node:
    await it.turn()
    (node,) = it.nodes()
    return node


async def test_a_token_that_ended_costs_no_event():
    bench = Bench()
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        async with living(it, node, bench):
            bench.see(31)
            await it.until(seen(it, node, 31))
            it.plane.keys._clock = Later()
            bench.see(43)
            await it.until(seen(it, node, 31, 43))


async def test_an_agent_comes_back_with_the_token_it_was_given_and_needs_no_other(tmp_path: Path):
    bench = Bench()
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        memory = AgentState.kept_in(tmp_path, SystemIds())
        async with living(it, node, bench, memory):
            bench.see(31)
            await it.until(seen(it, node, 31))
        assert (tmp_path / "papers.json").stat().st_mode & 0o777 == 0o600
        again = AgentState.kept_in(tmp_path, SystemIds())
        assert again.wallet.papers == memory.wallet.papers
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent_of(it, node, bench).run, None, again)
            bench.see(43)
            await it.until(seen(it, node, 31, 43))
            tasks.cancel_scope.cancel()


async def test_fewer_gpus_than_were_bought_are_told_and_their_return_too():
    bench = Bench()
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        state = it.plane.fleet.context.state

        def found(*counts: float) -> Callable[[], Awaitable[bool]]:
            async def so() -> bool:
                return [event.metrics["found"] for event in state.events.get(node.id, ())] == list(counts)

            return so

        async with living(it, node, bench):
            await serves(it, node)
            bench.count = 7
            await it.until(found(7))
            # A driver that does not answer proves nothing about its GPUs.
            bench.blind = True
            bench.count = 0
            await it.until(found(7))
            bench.blind, bench.count = False, 8
            await it.until(found(7, 8))
            assert state.events[node.id][0].kind is EventKind.GPU_MISSING


async def test_a_new_machine_with_fewer_gpus_than_were_bought_never_serves():
    bench = Bench(count=7)
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        reports, told = it.plane.fleet.reports, list[bool | None]()
        hear = reports.heartbeat

        def heard(node_id: NodeId, gpus: Sequence[Gpu], *, tested: bool | None) -> Node:
            told.append(tested)
            return hear(node_id, gpus, tested=tested)

        reports.heartbeat = heard

        async def given_back() -> bool:
            return node.id not in it.plane.fleet.context.state.nodes

        async with living(it, node, bench):
            await it.until(given_back)
        story = await it.operator.history(pb.HistoryRequest(subject=node.id))
        assert "node.active" not in [line.event for line in story.lines]
        assert True not in told


async def treated(it: Running, step: RepairStep) -> None:
    async def so() -> bool:
        return any(repair.step is step for repair in it.plane.fleet.context.state.repairs.values())

    await it.until(so)


async def serves(it: Running, node: Node) -> None:
    """One that is sick before it serves is given back, not treated."""

    async def so() -> bool:
        return it.plane.fleet.context.state.nodes[node.id].state is NodeState.ACTIVE

    await it.until(so)


async def test_an_agent_does_what_it_is_told_once_and_says_so():
    bench = Bench()
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        async with living(it, node, bench):
            await serves(it, node)
            bench.see(95)
            await treated(it, RepairStep.DONE)
        assert bench.treated == [(Remedy.RESET_GPU, 3)]


async def test_a_machine_that_was_treated_serves_when_it_passed_its_test_anew():
    bench = Bench()
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        async with living(it, node, bench):
            await serves(it, node)
            bench.testable.clear()
            bench.see(95)
            await treated(it, RepairStep.VERIFYING)
            while not bench.looks.empty():
                bench.looks.get_nowait()
            for _ in range(6):
                await bench.looks.get()
            await it.plane.fleet.tick()
            assert it.plane.fleet.context.state.nodes[node.id].state is NodeState.VERIFYING
            bench.testable.set()
            await treated(it, RepairStep.DONE)


class NoReboots(FakeProvider):
    """A cloud that leaves reboots to whoever is on the machine."""

    capabilities = frozenset()


async def test_a_reboot_is_begun_once_although_it_is_ordered_until_the_machine_is_down():
    bench = Bench()
    async with running(spec(1, timing=QUICK), seller=NoReboots) as it:
        node = await booted(it)
        async with living(it, node, bench):
            await serves(it, node)
            asks = HealthEvent(SystemClock().now(), EventKind.RECOVERY_ACTION, 0, metrics={"action": 2.0})
            bench.events.put_nowait(asks)
            await treated(it, RepairStep.TREATING)
            while not bench.looks.empty():
                bench.looks.get_nowait()
            # Each heartbeat begins with a look.
            for _ in range(6):
                await bench.looks.get()
        assert bench.treated == [(Remedy.REBOOT, 0)]
        (repair,) = it.plane.fleet.context.state.open_repairs.values()
        assert repair.step is RepairStep.TREATING


async def test_an_agent_that_cannot_do_as_it_is_told_says_why():
    bench = Bench(refuses=Terminal("agent.no_program", "There is no nvidia-smi on this machine."))
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        async with living(it, node, bench):
            await serves(it, node)
            bench.see(95)
            await treated(it, RepairStep.FAILED)
        story = await it.operator.history(pb.HistoryRequest(subject=node.id))
        assert any("There is no nvidia-smi on this machine." in line.sentence for line in story.lines)
        assert bench.treated[:1] == [(Remedy.RESET_GPU, 3)]


async def test_an_agent_ends_when_its_node_is_no_more():
    bench = Bench()
    async with running(spec(1, timing=QUICK)) as it:
        node = await booted(it)
        memory = AgentState.of_one_life(SystemIds())
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent_of(it, node, bench).run, JOIN, memory)
                bench.see(31)
                await it.until(seen(it, node, 31))
                state = it.plane.fleet.context.state
                del state.nodes[node.id]
                state.pool(node.pool).roll.drop(node.id)
        assert len(memory.outbox) == 0
