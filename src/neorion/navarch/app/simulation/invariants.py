"""Invariants of every run, checked on the simulated clouds, scheduler and machines and not on navarch's records."""

from collections.abc import Iterator, Sequence
from typing import Final

from neorion.keel.base import Duration, Finding, Severity
from neorion.keel.store import Tx
from neorion.navarch.app.simulation.agents import SimulatedAgent
from neorion.navarch.app.simulation.failure_modes import FailureMode
from neorion.navarch.app.simulation.simulated_fleet import SimulatedFleet
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.decide import violations
from neorion.navarch.decide.budget import begun
from neorion.navarch.decide.pool_size import count_members
from neorion.navarch.model import EventKind, Node, NodeId, NodeState, PoolSpec, RepairStep

_LOOK: Final = Duration.of(minutes=10)
# Grace for young machines, sweeps, lost calls, a restart or two: an orphan or a ghost that stays longer is forgotten.
_STRAY_LOOKS: Final = 9
# The next tick explains whatever waits.
_SILENT_LOOKS: Final = 3
_PROMISED: Final = (RepairStep.CORDONING, RepairStep.BUYING)
# Rows beyond what the histories and retention allow would grow for ever.
_ROWS_MAX: Final = 500_000


class InvariantChecker:
    """Looks after every step at what changed, and now and then at what takes time."""

    def __init__(self, stage: SimulatedFleet) -> None:
        self._stage = stage
        self._noted: tuple[int, int] | None = None
        self._found: list[Finding] = []
        self._struck: set[str] = set()
        self._strays: dict[str, int] = {}
        self._unexplained: dict[str, int] = {}
        # Whether each pool had room for a successor at the last look, and each node that is drained when that was decided.
        self._room_before: dict[str, bool] = {}
        self._had_room: dict[NodeId, bool] = {}
        stage.storm.watchers.append(self._remember)
        stage.work.watch = self._drained
        stage.world.check(self._check)

    async def run(self) -> None:
        while True:
            await self._stage.world.clock.sleep(_LOOK)
            fleet = self._stage.fleet
            self._found += self._double_purchases()
            if fleet is not None:
                self._found += self._stray(fleet)
                self._found += self._unexplained_waits(fleet)

    async def settled(self) -> None:
        """After the calm: everything came right, nothing is written any more, and nothing has grown."""
        stage = self._stage
        if not stage.quiet():
            self._found.append(_finding("calm", "fleet", self._unfinished()))
            return
        fleet = stage.fleet
        if fleet is None:
            return
        # The last word of agents that were treated a moment ago.
        await stage.world.sleep(600)
        noted = fleet.context.journal.version
        await stage.world.sleep(1_800)
        if stage.fleet is fleet and fleet.context.journal.version != noted:
            self._found.append(_finding("idle", "store", "something is written although nothing happens"))
        rows = await fleet.context.store.read(_rows)
        if rows > _ROWS_MAX:
            self._found.append(_finding("rows", "store", f"{rows} rows"))

    def _check(self) -> Sequence[Finding]:
        found, self._found = self._found, []
        fleet = self._stage.fleet
        noted = (fleet.context.journal.version, self._stage.work.version) if fleet is not None else None
        if fleet is not None and noted != self._noted:
            self._noted = noted
            for spec in self._stage.scene.specs.values():
                found += violations(fleet.context.state.view(spec, fleet.context.started))
                found += self._out_of_service(fleet, spec)
            found += self._innocent(fleet)
            found += self._serving(fleet)
            self._note_room(fleet)
        return found

    # What the clouds know.

    def _double_purchases(self) -> Iterator[Finding]:
        for cloud in self._stage.clouds:
            for intent, times in cloud.bought.items():
                if times > 1:
                    yield _finding("double", intent, f"one intent bought {times} machines")

    def _stray(self, fleet: FleetController) -> Iterator[Finding]:
        """Machines that no node accounts for. Times at which a cloud does not answer are not counted."""
        state = fleet.context.state
        known = {node.machine for node in state.nodes.values()}
        strays: set[str] = set()
        for cloud in self._stage.clouds:
            if cloud.behaviour.down or cloud.behaviour.unseen:
                continue
            alive = cloud.alive()
            staying = {machine.id for machine in alive if machine.stops is None}
            orphans = staying - known - {one.machine for one in state.purchases.values()}
            strays |= {f"orphan {machine}" for machine in orphans}
            there = {"", *(machine.id for machine in alive)}
            strays |= {
                f"ghost {node.id}"
                for node in state.nodes.values()
                if node.place.provider == cloud.name and node.machine not in there
            }
        for stray in strays:
            self._strays[stray] = looks = self._strays.get(stray, 0) + 1
            if looks > _STRAY_LOOKS:
                yield _finding("stray", stray, f"it was not repaired for {_LOOK * looks}")
        self._strays = {stray: self._strays[stray] for stray in sorted(strays)}

    # What the scheduler knows.

    def _out_of_service(self, fleet: FleetController, spec: PoolSpec) -> Iterator[Finding]:
        """Nodes that served and are closed now, but for those that the pool has too many."""
        state, places = fleet.context.state, self._stage.work.places
        nodes = state.pool(spec.name).nodes.values()
        closed = [
            node.id
            for node in nodes
            if (place := places.get(node.id)) is not None
            and place.served
            and not place.open
            and not node.retiring
            and not self._lost(node)
        ]
        for budget in spec.health.budgets:
            most = budget.most.of(spec.scaling.most)
            narrow = budget.reasons or budget.zones or budget.each_zone or budget.windows or budget.per
            if not narrow and len(closed) > most:
                told = ", ".join(f"{node} {state.nodes[node].state.value}" for node in closed)
                yield _finding("budget", spec.name, f"{len(closed)} nodes are closed, {most} may be: {told}")

    def _lost(self, node: Node) -> bool:
        """Return whether its machine is gone, and its record ends."""
        alive = (machine.id for cloud in self._stage.clouds for machine in cloud.alive())
        return node.state is NodeState.TERMINATING and node.machine not in alive

    def _serving(self, fleet: FleetController) -> Iterator[Finding]:
        """The scheduler places work on every active node."""
        for node in fleet.context.state.nodes.values():
            place = self._stage.work.places.get(node.id)
            if node.state is NodeState.ACTIVE and (place is None or not place.open):
                yield _finding(
                    "serving", node.id, "it counts as active, and the scheduler places nothing on it"
                )

    def _drained(self, node: Node) -> None:
        """In the place of a node that is drained to be replaced another takes work already, where there is room."""
        fleet = self._stage.fleet
        repair = fleet.context.state.open_repairs.get(node.id) if fleet is not None else None
        if fleet is None or repair is None or not repair.remedy.costs_the_node or node.spare:
            return
        place = self._stage.work.places.get(repair.successor) if repair.successor else None
        if place is not None and place.open:
            return
        if repair.swap and repair.successor in fleet.context.state.nodes:
            self._found.append(_finding("order", node.id, "it is drained before its successor takes work"))
        elif self._had_room.get(node.id, self._room(fleet, node.pool)):
            self._found.append(
                _finding("order", node.id, "it is drained first, although there was room for a successor")
            )

    def _note_room(self, fleet: FleetController) -> None:
        """Note the drains that were decided on although there was room before."""
        draining = [node for node in fleet.context.state.nodes.values() if node.state is NodeState.DRAINING]
        room = {pool: self._room(fleet, pool) for pool in self._stage.scene.specs}
        self._had_room = {
            node.id: self._had_room.get(node.id, room[node.pool] and self._room_before.get(node.pool, True))
            for node in draining
        }
        self._room_before = room

    def _room(self, fleet: FleetController, pool: str) -> bool:
        spec, state = self._stage.scene.specs[pool], fleet.context.state
        alive = [
            node for node in state.pool(pool).nodes.values() if not node.state.leaving and not node.spare
        ]
        most = spec.scaling.most + spec.scaling.surge.of(spec.scaling.most)
        refused = any(trouble.kind == "quota" for trouble in state.troubles.values())
        # Successors that are about to be bought have their places already, also in the place of one that was refused.
        promised = sum(
            one.pool == pool and one.swap and one.step in _PROMISED and one.successor not in state.nodes
            for one in state.open_repairs.values()
        )
        return len(alive) + promised < most and not refused

    # What befell whom.

    def _remember(self, member: SimulatedAgent, ill: FailureMode) -> None:
        if ill.blames_the_machine or (ill.mute and not ill.agent_only):
            self._struck.add(member.machine.id)

    def _innocent(self, fleet: FleetController) -> Iterator[Finding]:
        """No repair of a machine without a fault begins. Errors of applications and dead agents are no faults of it."""
        for repair in fleet.context.state.open_repairs.values():
            node = fleet.context.state.nodes.get(repair.node)
            witnessed = repair.signature != EventKind.SILENCE or begun(repair)
            if node is not None and witnessed and node.machine not in self._struck:
                yield _finding("innocent", node.id, f"nothing befell it, and yet: {repair.why}")

    # Whether waits explain themselves.

    def _unexplained_waits(self, fleet: FleetController) -> Iterator[Finding]:
        waits: set[str] = set()
        for name, spec in self._stage.scene.specs.items():
            view = fleet.context.state.view(spec, fleet.context.started)
            told = {hold.subject for hold in fleet.context.state.pool(name).holds if hold.sentence}
            waits |= {
                repair.node
                for repair in view.open_repairs
                if repair.step is RepairStep.WAITING and repair.node not in told
            }
            coming = any(node.state.coming for node in view.nodes)
            if count_members(view) < max(view.state.wanted, 0) and not coming and name not in told:
                waits.add(name)
        for subject in waits:
            self._unexplained[subject] = looks = self._unexplained.get(subject, 0) + 1
            if looks > _SILENT_LOOKS:
                yield _finding("unexplained", subject, f"it has waited {_LOOK * looks}, without a reason")
        self._unexplained = {subject: self._unexplained[subject] for subject in sorted(waits)}

    def _unfinished(self) -> str:
        """Describes what is still in progress although no failure is injected any longer."""
        fleet = self._stage.fleet
        if fleet is None:
            return "the control plane is away"
        state = fleet.context.state
        nodes = [
            f"{node.id} {node.state.value}" for node in state.nodes.values() if node.state.value != "active"
        ]
        repairs = [f"{one.node} {one.step.value} ({one.why})" for one in state.open_repairs.values()]
        holds = [hold.sentence for pool_cache in state.pools.values() for hold in pool_cache.holds]
        alive = sum(len(cloud.alive()) for cloud in self._stage.clouds)
        sick = [f"{one.node} {list(one.ills)}" for one in self._stage.crowd.members.values() if not one.well]
        return f"{alive} machines, {len(state.nodes)} nodes; {nodes}; {repairs}; {holds}; sick: {sick}"


def _finding(law: str, subject: str, sentence: str) -> Finding:
    return Finding(Severity.ERROR, f"law.{law}", subject, f"{sentence}.")


def _rows(tx: Tx) -> int:
    tables = ("node", "purchase", "repair", "pool", "trouble", "story", "health_event")
    return sum(tx.execute(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables)  # noqa: S608 -- our own table names
