"""The parts of the operator, and how they are joined."""

from dataclasses import dataclass
from typing import Any

from neorion.devservers.controllers import (
    CARRIERS,
    LOOKERS,
    Alerts,
    Flavors,
    Hands,
    Homes,
    Looks,
    Mirrors,
    Servers,
)
from neorion.devservers.controllers.cache import in_use, marked_home, server_key
from neorion.devservers.decide import Settings, flavors_of, pod_refusal
from neorion.devservers.model.kube_types import Body, DevServer
from neorion.devservers.ports import UNTALLIED, Crier, Hook, Keys, Looker, Tally
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import KubeApi, ObjectKey
from neorion.keel.kube.control import (
    TENURE,
    UNMEASURED,
    Applier,
    Controller,
    ControlMetricsSink,
    Election,
    EventRecorder,
    InformerFactory,
    LeaderLeaseTiming,
    Operator,
    not_only_status,
    own_key,
)
from neorion.keel.run import Backoff, retry

MANAGER = "devservers"
LEASE = "devservers-operator"
_PATIENCE = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=5), attempts=8)


@dataclass(frozen=True, slots=True)
class Plan:
    """Who this operator is, where it keeps its lease, and which namespace it looks after; "" is all of them."""

    settings: Settings
    namespace: str
    identity: str
    scope: str = ""
    tenure: LeaderLeaseTiming = TENURE


@dataclass(frozen=True, slots=True)
class Reach:
    """What the operator reaches beyond the objects of the API. Without a looker nothing is ever idle."""

    looker: Looker | None = None
    crier: Crier | None = None
    hook: Hook | None = None
    tally: Tally = UNTALLIED
    keys: Keys | None = None


NOWHERE = Reach()


def build(
    api: KubeApi,
    plan: Plan,
    clock: Clock,
    rng: Rng,
    measures: ControlMetricsSink = UNMEASURED,
    reach: Reach = NOWHERE,
) -> Operator:
    informers = InformerFactory(api, clock, rng, measures=measures)
    mirrors = Mirrors(informers, plan.scope)
    reach.tally.oversee(mirrors.servers)
    election = Election(api, ObjectKey(plan.namespace, LEASE), plan.identity, clock, rng, plan.tenure)
    recorder = EventRecorder(api, "devservers.io/operator", plan.identity, clock)
    applier = Applier(api, MANAGER, informers, election, measures)
    alerts = Alerts(mirrors, reach.crier, reach.hook, clock, reach.tally)
    alerting = Controller("alerts", alerts.reconcile, clock, rng, measures, CARRIERS)
    hands = Hands(api, applier, recorder, election, alerts.teller(alerting.wake), reach.keys)

    servers = Controller(
        "servers", Servers(mirrors, hands, plan.settings, clock).reconcile, clock, rng, measures
    )
    servers.watch(mirrors.servers, own_key, not_only_status)
    # It begins with the servers there are: without its server nothing else needs anything.
    servers.watch(mirrors.servers, mirrors.behind, _stands_otherwise, begins=False)
    servers.watch(mirrors.flavors, mirrors.on_flavor, not_only_status, begins=False)
    servers.watch(mirrors.claims, server_key, begins=False)
    servers.watch(mirrors.bodies, server_key, _refused_otherwise, begins=False)
    servers.watch(mirrors.services, server_key, begins=False)
    servers.watch(mirrors.scripts, server_key, begins=False)
    servers.watch(mirrors.scripts, mirrors.of_user_keys, begins=False)
    servers.watch(mirrors.pods, server_key, begins=False)

    homes = Controller("homes", Homes(mirrors, hands, clock).reconcile, clock, rng, measures)
    homes.watch(mirrors.claims, marked_home, not_only_status)
    homes.watch(mirrors.servers, mirrors.marked_home_of, not_only_status, begins=False)

    controllers: list[Controller[Any]] = [servers, homes, alerting]
    if reach.looker is not None:
        looks = Looks(mirrors, reach.looker, clock, servers.wake, reach.tally)
        looking = Controller("looks", looks.reconcile, clock, rng, measures, LOOKERS)
        # Its status says when it began to run, and how long it may be idle is its own to say.
        looking.watch(mirrors.servers, in_use, _runs_otherwise)
        controllers.append(looking)

    flavors = Flavors(api, plan.namespace, election)

    async def first() -> None:
        await retry(flavors.found, _PATIENCE, clock, rng)

    return Operator(informers, controllers, election, recorder, first)


def _refused_otherwise(before: Body, after: Body) -> bool:
    """Of a Deployment's status only this is of interest: how far a server is, its pod says."""
    return not_only_status(before, after) or pod_refusal(before) != pod_refusal(after)


def _stands_otherwise(before: DevServer, after: DevServer) -> bool:
    """A flavor that was left is free when the status tells of another one."""
    return not_only_status(before, after) or flavors_of(before) != flavors_of(after)


def _runs_otherwise(before: DevServer, after: DevServer) -> bool:
    return not_only_status(before, after) or before.status.phase is not after.status.phase
