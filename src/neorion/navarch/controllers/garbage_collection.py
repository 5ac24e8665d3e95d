"""Compares the clouds' machines with the nodes. Terminates orphans, and removes nodes without a machine."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from neorion.capacity.provider import Machine, MachineId, MachineState, Provider
from neorion.keel.base import Duration, Error, Finding, Instant, NotFound, Severity
from neorion.keel.telemetry import logger
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.decide import machine_gone, violations
from neorion.navarch.model import Node, NodeId, NodeState, PurchaseState
from neorion.navarch.state import purchase_of

log = logger(__name__)

# Above the lag of any cloud's list: a machine younger than this may be missing from it, or unknown for good reason.
GRACE: Final = Duration.of(minutes=5)
# Times that a machine must be missing from lists before its cloud is asked about it.
MISSING_TIMES: Final = 2


@contextmanager
def _alone(provider: Provider, machine: MachineId) -> Generator[None]:
    """An error about one machine is its own: the others are swept all the same, and this one again next time."""
    try:
        yield
    except Error as error:
        log.warning(
            "a machine could not be swept", provider=provider.name, machine=machine, why=error.sentence
        )


class GarbageCollector:
    """Runs now and then, and once at the start. Machines that this installation never asked for are told of, never touched."""

    def __init__(self, fleet: FleetController) -> None:
        self._fleet = fleet
        self._context = fleet.context
        self._state = fleet.context.state
        self._missing: dict[NodeId, int] = {}
        self.findings: dict[str, Finding] = {}

    async def tick(self) -> None:
        self.findings = {}
        self._check_invariants()
        for provider in self._context.backends.providers.values():
            try:
                await self._compare(provider)
            except Error as error:
                # The others are swept all the same; this one again next time.
                log.warning("a cloud could not be swept", provider=provider.name, why=error.sentence)
        self._missing = {node: times for node, times in self._missing.items() if node in self._state.nodes}

    async def _compare(self, provider: Provider) -> None:
        # Before it is asked: a machine bought while the list is under way is younger than what the list knows.
        now = self._context.clock.now()
        machines = await provider.list(self._context.installation.id)
        listed_with = {node.machine for node in self._state.nodes.values()}
        await self._check_missing(provider, machines, now)
        for machine in machines:
            # Read again for each machine, because requests take time and nodes change meanwhile.
            node = self._node_of(machine)
            if node is not None:
                self._learn(node, machine)
            elif machine.id not in listed_with:
                with _alone(provider, machine.id):
                    await self._match(provider, machine, now)

    def _check_invariants(self) -> None:
        """Logs violated invariants in production too, not only in tests."""
        for spec in self._context.specs.values():
            for finding in violations(self._state.view(spec, self._context.started)):
                log.error("law broken", code=finding.code, sentence=finding.sentence)

    def _node_of(self, machine: Machine) -> Node | None:
        named = (self._state.nodes[node] for node in self._state.names.get(machine.id, ()))
        return next((node for node in named if node.machine == machine.id), None)

    def _learn(self, node: Node, machine: Machine) -> None:
        """Addresses and names come with the boot, on some clouds long after the purchase."""
        name, host = machine.name or node.machine_name, machine.host or node.host
        address = machine.private_address or machine.address or node.address
        if (name, host, address) != (node.machine_name, node.host, node.address):
            self._fleet.writer.update_node(replace(node, machine_name=name, host=host, address=address))

    async def _match(self, provider: Provider, machine: Machine, now: Instant) -> None:
        if machine.state in (MachineState.GONE, MachineState.STOPPING):
            return
        purchase = self._state.purchases.get(machine.intent) or await purchase_of(
            self._context.store, machine.intent
        )
        if self._node_of(machine) is not None:
            # It became known while its purchase was looked for.
            return
        if purchase is None:
            self._note("navarch.foreign_machine", machine, "has our tag, but no purchase of ours")
        elif purchase.state is PurchaseState.INTENDED:
            # Its answer is still to come, or was lost: this is the answer.
            self._fleet.provisioner.bought(purchase.id, machine)
        elif machine.created is None or now.since(machine.created) > GRACE:
            self._note("navarch.orphan", machine, "belongs to no node and is terminated")
            await provider.terminate(machine.id)

    async def _check_missing(self, provider: Provider, machines: Sequence[Machine], now: Instant) -> None:
        there = {machine.id for machine in machines}
        for node in [one for one in self._state.nodes.values() if one.place.provider == provider.name]:
            if not node.machine or node.machine in there:
                self._missing.pop(node.id, None)
                continue
            if node.state is NodeState.TERMINATING or now.since(node.born) < GRACE:
                continue
            self._missing[node.id] = times = self._missing.get(node.id, 0) + 1
            if times >= MISSING_TIMES and not self._agent_is_alive(node, now):
                with _alone(provider, node.machine):
                    await self._confirm(provider, node)

    def _agent_is_alive(self, node: Node, now: Instant) -> bool:
        """Reports whether the node's agent still sends heartbeats, which proves that its machine exists."""
        heartbeat = self._state.heartbeats.get(node.id)
        silence = self._context.spec(node.pool).timing.silence
        return heartbeat is not None and heartbeat.heard is not None and now.since(heartbeat.heard) < silence

    async def _confirm(self, provider: Provider, node: Node) -> None:
        try:
            if (await provider.describe(node.machine)).state is not MachineState.GONE:
                return
        except NotFound:
            pass
        self._missing.pop(node.id, None)
        newest = self._state.nodes.get(node.id)
        if newest is None or newest.state is NodeState.TERMINATING:
            return
        # What serves is never forgotten by the scheduler: this is durable before the terminator tells it.
        self._fleet.writer.transition_node(
            newest, NodeState.TERMINATING, f"{provider.name} has no {node.machine} any more"
        )
        repair = self._state.open_repairs.get(node.id)
        for action in machine_gone(repair) if repair is not None else ():
            self._fleet.applier.apply(action)

    def _note(self, code: str, machine: Machine, words: str) -> None:
        sentence = f"{machine.id} at {machine.region or 'its cloud'} {words}."
        self.findings[machine.id] = Finding(
            Severity.WARNING, code, machine.id, sentence, "look at it in the cloud's console"
        )
        log.warning("machine without a node", machine=machine.id, code=code)
