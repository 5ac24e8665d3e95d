"""The parts of the operator, and how they are joined."""

from dataclasses import dataclass
from typing import Any

from neorion.devservers.controllers import (
    ALERT_WORKERS,
    PROBE_WORKERS,
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
    """The operator's identity, the namespace of its lease, and the namespace that it manages; "" is all of them."""

    settings: OperatorSettings
    namespace: str
    identity: str
    scope: str = ""
    tenure: LeaderLeaseTiming = TENURE


@dataclass(frozen=True, slots=True)
class OperatorAdapters:
    """Adapters of the operator beyond the API's objects. Without a prober no server is ever idle."""

    prober: ActivityProber | None = None
    terminals: TerminalNotifier | None = None
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
    cache = ClusterCache(informers, plan.scope, kueue=plan.settings.kueue)
    reach.tally.oversee(cache.servers)
    election = Election(api, ObjectKey(plan.namespace, LEASE), plan.identity, clock, rng, plan.tenure)
    recorder = EventRecorder(api, "devservers.io/operator", plan.identity, clock)
    applier = Applier(api, MANAGER, informers, election, measures)
    alerts = AlertController(cache, reach.terminals, reach.hook, clock, reach.tally)
    alerting = Controller("alerts", alerts.reconcile, clock, rng, measures, ALERT_WORKERS)
    writers = Writers(api, applier, recorder, election, alerts.sender(alerting.wake), reach.keys)

    servers = Controller(
        "servers", DevServerController(cache, writers, plan.settings, clock).reconcile, clock, rng, measures
    )
    servers.watch(cache.servers, self_key, generation_changed)
    # It begins with the servers there are: without its server nothing else needs anything.
    servers.watch(cache.servers, cache.competing_servers, _stands_otherwise, begins=False)
    servers.watch(cache.flavors, cache.on_flavor, generation_changed, begins=False)
    servers.watch(cache.claims, server_key, begins=False)
    servers.watch(cache.deployments, server_key, _refused_otherwise, begins=False)
    servers.watch(cache.stateful_sets, server_key, generation_changed, begins=False)
    if cache.queues is not None:
        # Quota is released when the last Pod is gone and none can come.
        servers.watch(cache.deployments, server_key, _scaled_otherwise, begins=False)
        servers.watch(cache.stateful_sets, server_key, _scaled_otherwise, begins=False)
        servers.watch(cache.queues.workloads, workload_server, begins=False)
    servers.watch(cache.services, server_key, begins=False)
    servers.watch(cache.scripts, server_key, begins=False)
    servers.watch(cache.scripts, cache.of_user_keys, begins=False)
    servers.watch(cache.pods, server_key, begins=False)

    homes = Controller("homes", HomeController(cache, writers, clock).reconcile, clock, rng, measures)
    homes.watch(cache.claims, expiring_home, generation_changed)
    homes.watch(cache.servers, cache.marked_home_of, generation_changed, begins=False)

    warm = WarmPodController(informers, applier, plan.settings)
    warming = Controller("warm", warm.reconcile, clock, rng, measures)
    warm.watched_by(warming)

    controllers: list[Controller[Any]] = [servers, homes, alerting, warming]
    if reach.prober is not None:
        probes = ActivityController(cache, reach.prober, clock, servers.wake, reach.tally)
        probing = Controller("looks", probes.reconcile, clock, rng, measures, PROBE_WORKERS)
        # Its status says when it began to run, and how long it may be idle is its own to say.
        probing.watch(cache.servers, idle_stop_enabled, _runs_otherwise)
        controllers.append(probing)

    flavors = DefaultFlavors(api, plan.namespace, election)

    async def first() -> None:
        await retry(flavors.found, _PATIENCE, clock, rng)

    return Operator(informers, controllers, election, recorder, first)


def _refused_otherwise(before: ServerDeployment, after: ServerDeployment) -> bool:
    """Reports a change of the Deployment's spec or of its refusal. Progress of a server comes from its pod."""
    return generation_changed(before, after) or pod_refusal(before) != pod_refusal(after)


def _scaled_otherwise(before: ServerDeployment, after: ServerDeployment) -> bool:
    """A Deployment without Pods that has lost the last one, or heard that it is to have none."""
    if after.spec.replicas != 0:
        return False
    was, told = before.status, after.status
    return (was.observed_generation, was.replicas) != (told.observed_generation, told.replicas)


def _stands_otherwise(before: DevServerObject, after: DevServerObject) -> bool:
    """Reports a change of the server's spec or flavors. A flavor that it left becomes free with the new status."""
    return generation_changed(before, after) or flavors_of(before) != flavors_of(after)


def _runs_otherwise(before: DevServerObject, after: DevServerObject) -> bool:
    return generation_changed(before, after) or before.status.phase is not after.status.phase
