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
    """Everything outside: clouds by name, the scheduler of the nodes' work, signs of demand, the judge of events."""

    providers: Mapping[str, Provider]
    scheduler: Scheduler
    demand: DemandSource
    judge: PolicyEngine
    # None where no pool has setup commands.
    outfitter: Bootstrapper | None = None
    # What else a machine is called, by the name that its agent has for it: the cluster knows its nodes' machines.
    aliases: Callable[[str], AbstractSet[str]] = field(default=lambda _: frozenset[str]())


@dataclass(slots=True)
class FleetContext:
    """One control plane's shared things. `wake` turns its loop; it is set when the loop is made."""

    book: FleetState
    journal: Journal
    store: Store
    world: Backends
    specs: dict[str, PoolSpec]
    installation: Installation
    clock: Clock
    ids: Ids
    rng: Rng
    started: Instant
    # Where agents reach this control plane, and the token that lets one of them speak for one node.
    address: str = ""
    node_token: Callable[[NodeId], str] = field(default=lambda _: "")
    # What is wrong and not written in any record, by what it is about.
    findings: dict[str, Finding] = field(default_factory=dict[str, Finding])
    wake: Callable[[], None] = lambda: None
    # Is told of everything that happens to nodes and repairs; metrics stand behind it.
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
        found = self.book.nodes.get(NodeId(name))
        if found is not None:
            return found
        named = [
            node
            for node in self.book.nodes.values()
            if name and name in (node.machine, node.machine_name, node.kube_name, node.agent)
        ]
        if len(named) == 1:
            return named[0]
        raise NotFound(
            "navarch.no_node",
            f"There is no node {name[:80]!r}.",
            hint=did_you_mean(name, self.book.nodes) or "see them with: navarch node list",
        )
