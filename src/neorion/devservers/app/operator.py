"""The parts of the operator, and how they are joined."""

from dataclasses import dataclass
from typing import Any

from neorion.devservers.controllers import (
    CARRIERS,
    LOOKERS,
    ActivityController,
    AlertController,
    ClusterCache,
    DefaultFlavors,
    DevServerController,
    HomeController,
    WarmPodController,
    Writers,
)
from neorion.devservers.controllers.cache import expiring_home, idle_stop_enabled, server_key
from neorion.devservers.controllers.queue import workload_server
from neorion.devservers.decide import OperatorSettings, flavors_of, pod_refusal
from neorion.devservers.model.kube_types import DevServerObject, ServerDeployment
from neorion.devservers.ports import (
    UNTALLIED,
    ActivityProber,
    AlertHook,
    HostKeyFactory,
    OperatorMetrics,
    TerminalNotifier,
)
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
    generation_changed,
    self_key,
)
from neorion.keel.run import Backoff, retry

MANAGER = "devservers"
LEASE = "devservers-operator"
_PATIENCE = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=5), attempts=8)


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """Who this operator is, where it keeps its lease, and which namespace it looks after; "" is all of them."""

    settings: OperatorSettings
    namespace: str
    identity: str
    scope: str = ""
    tenure: LeaderLeaseTiming = TENURE


@dataclass(frozen=True, slots=True)
class OperatorAdapters:
    """What the operator reaches beyond the objects of the API. Without a looker nothing is ever idle."""

    looker: ActivityProber | None = None
    crier: TerminalNotifier | None = None
    hook: AlertHook | None = None
    tally: OperatorMetrics = UNTALLIED
    keys: HostKeyFactory | None = None


NOWHERE = OperatorAdapters()


def build(
    api: KubeApi,
    plan: OperatorOptions,
    clock: Clock,
    rng: Rng,
    measures: ControlMetricsSink = UNMEASURED,
    reach: OperatorAdapters = NOWHERE,
) -> Operator:
    informers = InformerFactory(api, clock, rng, measures=measures)
    mirrors = ClusterCache(informers, plan.scope, kueue=plan.settings.kueue)
    reach.tally.oversee(mirrors.servers)
    election = Election(api, ObjectKey(plan.namespace, LEASE), plan.identity, clock, rng, plan.tenure)
    recorder = EventRecorder(api, "devservers.io/operator", plan.identity, clock)
    applier = Applier(api, MANAGER, informers, election, measures)
    alerts = AlertController(mirrors, reach.crier, reach.hook, clock, reach.tally)
    alerting = Controller("alerts", alerts.reconcile, clock, rng, measures, CARRIERS)
    hands = Writers(api, applier, recorder, election, alerts.teller(alerting.wake), reach.keys)

    servers = Controller(
        "servers", DevServerController(mirrors, hands, plan.settings, clock).reconcile, clock, rng, measures
    )
    servers.watch(mirrors.servers, self_key, generation_changed)
    # It begins with the servers there are: without its server nothing else needs anything.
    servers.watch(mirrors.servers, mirrors.behind, _stands_otherwise, begins=False)
    servers.watch(mirrors.flavors, mirrors.on_flavor, generation_changed, begins=False)
    servers.watch(mirrors.claims, server_key, begins=False)
    servers.watch(mirrors.bodies, server_key, _refused_otherwise, begins=False)
    servers.watch(mirrors.stateful_sets, server_key, generation_changed, begins=False)
    if mirrors.queues is not None:
        # Quota is given back when the last Pod is gone and none can come.
        servers.watch(mirrors.bodies, server_key, _scaled_otherwise, begins=False)
        servers.watch(mirrors.stateful_sets, server_key, _scaled_otherwise, begins=False)
        servers.watch(mirrors.queues.workloads, workload_server, begins=False)
    servers.watch(mirrors.services, server_key, begins=False)
    servers.watch(mirrors.scripts, server_key, begins=False)
    servers.watch(mirrors.scripts, mirrors.of_user_keys, begins=False)
    servers.watch(mirrors.pods, server_key, begins=False)

    homes = Controller("homes", HomeController(mirrors, hands, clock).reconcile, clock, rng, measures)
    homes.watch(mirrors.claims, expiring_home, generation_changed)
    homes.watch(mirrors.servers, mirrors.marked_home_of, generation_changed, begins=False)

    warm = WarmPodController(informers, applier, plan.settings)
    warming = Controller("warm", warm.reconcile, clock, rng, measures)
    warm.watched_by(warming)

    controllers: list[Controller[Any]] = [servers, homes, alerting, warming]
    if reach.looker is not None:
        looks = ActivityController(mirrors, reach.looker, clock, servers.wake, reach.tally)
        looking = Controller("looks", looks.reconcile, clock, rng, measures, LOOKERS)
        # Its status says when it began to run, and how long it may be idle is its own to say.
        looking.watch(mirrors.servers, idle_stop_enabled, _runs_otherwise)
        controllers.append(looking)

    flavors = DefaultFlavors(api, plan.namespace, election)

    async def first() -> None:
        await retry(flavors.found, _PATIENCE, clock, rng)

    return Operator(informers, controllers, election, recorder, first)


def _refused_otherwise(before: ServerDeployment, after: ServerDeployment) -> bool:
    """Of a Deployment's status only this is of interest: how far a server is, its pod says."""
    return generation_changed(before, after) or pod_refusal(before) != pod_refusal(after)


def _scaled_otherwise(before: ServerDeployment, after: ServerDeployment) -> bool:
    """A Deployment without Pods that has lost the last one, or heard that it is to have none."""
    if after.spec.replicas != 0:
        return False
    was, told = before.status, after.status
    return (was.observed_generation, was.replicas) != (told.observed_generation, told.replicas)


def _stands_otherwise(before: DevServerObject, after: DevServerObject) -> bool:
    """A flavor that was left is free when the status tells of another one."""
    return generation_changed(before, after) or flavors_of(before) != flavors_of(after)


def _runs_otherwise(before: DevServerObject, after: DevServerObject) -> bool:
    return generation_changed(before, after) or before.status.phase is not after.status.phase
