"""What operators are made of: mirrors of the cluster, a queue of keys, one hand that writes, a lease, and the wheel that turns them.

    async def reconcile(key: Key) -> Duration | None: ...

    informers = Informers(api, clock, rng)
    servers, pods = informers.of(DEV_SERVER), informers.of(POD)
    controller = Controller("devservers", reconcile, clock, rng)
    controller.watch(servers, own_key, not_only_status)
    controller.watch(pods, owner_key(DEV_SERVER))
    await Operator(informers, [controller], election, recorder).run(crew.stopping)

What an operator decides must not be here, nor anything that knows a kind by name, Leases and Events apart. `metrics` is
imported by processes that serve them.
"""

from neorion.keel.kube.control.applier import Applier, difference
from neorion.keel.kube.control.apply_hash import APPLIED
from neorion.keel.kube.control.controller import Controller, Reconcile, not_only_status, own_key, owner_key
from neorion.keel.kube.control.election import TENURE, UNFENCED, Election, Fence, Tenure
from neorion.keel.kube.control.events import Recorder
from neorion.keel.kube.control.informer import Index, Informer, Listener, by_label, by_owner
from neorion.keel.kube.control.metrics_port import UNMEASURED, Ending, Measures
from neorion.keel.kube.control.operator import Operator
from neorion.keel.kube.control.queue import Lane, Taken, WorkQueue
from neorion.keel.kube.control.reflector import Feed, Informers

__all__ = [
    "APPLIED",
    "TENURE",
    "UNFENCED",
    "UNMEASURED",
    "Applier",
    "Controller",
    "Election",
    "Ending",
    "Feed",
    "Fence",
    "Index",
    "Informer",
    "Informers",
    "Lane",
    "Listener",
    "Measures",
    "Operator",
    "Reconcile",
    "Recorder",
    "Taken",
    "Tenure",
    "WorkQueue",
    "by_label",
    "by_owner",
    "difference",
    "not_only_status",
    "own_key",
    "owner_key",
]
