"""Parts that all appliers share: the fleet's state, the journal, the ports and the wake of the loop."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from neorion.capacity.provider import Provider
from neorion.keel.base import Finding, Instant, NotFound, did_you_mean
from neorion.keel.clock import Clock, Ids, Rng
from neorion.keel.store import Store
from neorion.navarch.model import Node, NodeId, PoolSpec, Purchase, Repair
from neorion.navarch.ports import Bootstrapper, DemandSource, PolicyEngine, Scheduler
from neorion.navarch.state import FleetState, Installation, Journal


@dataclass(frozen=True, slots=True)
class Backends:
    """Adapters: providers by name, the scheduler of the nodes' work, the source of demand, and the policy engine."""

    providers: Mapping[str, Provider]
    scheduler: Scheduler
    demand: DemandSource
    policy_engine: PolicyEngine
    # None where no pool has setup commands.
    bootstrapper: Bootstrapper | None = None
    # Other names of a machine by its agent's name, from the cluster.
    aliases: Callable[[str], AbstractSet[str]] = field(default=lambda _: frozenset[str]())


@dataclass(slots=True)
class FleetContext:
    """Parts that the controllers share. `wake` requests a tick of the loop; it is set when the loop is made."""

    state: FleetState
    journal: Journal
    store: Store
    backends: Backends
    specs: dict[str, PoolSpec]
    installation: Installation
    clock: Clock
    ids: Ids
    rng: Rng
    started: Instant
    # Address of this control plane for agents, and the token of a node.
    address: str = ""
    node_token: Callable[[NodeId], str] = field(default=lambda _: "")
    # Findings that no record contains, by subject.
    findings: dict[str, Finding] = field(default_factory=dict[str, Finding])
    wake: Callable[[], None] = lambda: None
    # Called with every change of nodes, repairs and purchases, for metrics.
    watch: Callable[[Node | Repair | Purchase], None] = field(default=lambda _: None)

    def spec(self, pool: str) -> PoolSpec:
        found = self.specs.get(pool)
        if found is None:
            raise NotFound(
                "navarch.no_pool", f"There is no pool {pool[:80]!r}.", hint=did_you_mean(pool, self.specs)
            )
        return found

    def node(self, name: str) -> Node:
        """A node by its id, or by any other name that only it goes by."""
        found = self.state.nodes.get(NodeId(name))
        if found is not None:
            return found
        named = [
            node
            for node in self.state.nodes.values()
            if name and name in (node.machine, node.machine_name, node.kube_name, node.agent)
        ]
        if len(named) == 1:
            return named[0]
        raise NotFound(
            "navarch.no_node",
            f"There is no node {name[:80]!r}.",
            hint=did_you_mean(name, self.state.nodes) or "see them with: navarch node list",
        )
