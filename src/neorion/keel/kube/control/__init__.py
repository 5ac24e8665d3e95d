"""Parts of an operator: informers, a work queue, an applier, leader election, and the control loop that connects them.

    async def reconcile(key: Key) -> Duration | None: ...

    informers = Informers(api, clock, rng)
    servers, pods = informers.of(DEV_SERVER), informers.of(POD)
    controller = Controller("devservers", reconcile, clock, rng)
    controller.watch(servers, own_key, not_only_status)
    controller.watch(pods, owner_key(DEV_SERVER))
    await Operator(informers, [controller], election, recorder).run(crew.stopping)

Decisions of an operator must not be here, nor any kind except Leases and Events. `metrics` is
imported by processes that serve them.
"""

from neorion.keel.kube.control.applier import Applier, difference
from neorion.keel.kube.control.apply_hash import APPLIED
from neorion.keel.kube.control.contested import ContestedObject
from neorion.keel.kube.control.controller import (
    Controller,
    Reconcile,
    generation_changed,
    owner_key,
    self_key,
)
from neorion.keel.kube.control.election import TENURE, UNFENCED, Election, Fence, LeaderLeaseTiming
from neorion.keel.kube.control.events import EventRecorder
from neorion.keel.kube.control.informer import EventHandler, Index, Informer, by_label, by_owner
from neorion.keel.kube.control.metrics_port import UNMEASURED, ControlMetricsSink, ReconcileOutcome
from neorion.keel.kube.control.operator import Operator
from neorion.keel.kube.control.queue import Priority, QueueItem, WorkQueue
from neorion.keel.kube.control.reflector import InformerFactory, Reflector

__all__ = [
    "APPLIED",
    "TENURE",
    "UNFENCED",
    "UNMEASURED",
    "Applier",
    "ContestedObject",
    "ControlMetricsSink",
    "Controller",
    "Election",
    "EventHandler",
    "EventRecorder",
    "Fence",
    "Index",
    "Informer",
    "InformerFactory",
    "LeaderLeaseTiming",
    "Operator",
    "Priority",
    "QueueItem",
    "Reconcile",
    "ReconcileOutcome",
    "Reflector",
    "WorkQueue",
    "by_label",
    "by_owner",
    "difference",
    "generation_changed",
    "owner_key",
    "self_key",
]
