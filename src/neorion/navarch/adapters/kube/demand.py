"""Demand of a Kubernetes cluster by pool: pods with the label `navarch.dev/pool`, and Kueue's workloads.

A pod is pending until it has a node. Pods with a scheduling gate and workloads without quota are not counted, because more
nodes would not help them. A workload with quota that is not admitted yet counts whole: its pods do not exist yet.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from neorion.capacity.node import marks
from neorion.keel.base import Denied, Duration, Quantity, Retry
from neorion.keel.kube import KubeApi, Selector, UnknownKind, condition
from neorion.keel.kube.control import InformerFactory, by_label
from neorion.keel.kube.core import POD, Pod
from neorion.keel.kube.core.pods import Container, PodSpec
from neorion.keel.telemetry import logger
from neorion.navarch.adapters.kube.kueue_types import WORKLOAD, PodSet, Workload
from neorion.navarch.model import Demand, Gang

log = logger(__name__)

_SYNC_WAIT: Final = Duration.of(seconds=1)
# Labels by which pods say that they start together or not at all.
_GANGS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io/name",
    "kueue.x-k8s.io/pod-group-name",
    "jobset.sigs.k8s.io/jobset-name",
)


@dataclass(frozen=True, slots=True)
class PendingWork:
    """One pod that needs a node: how many GPUs of it, and with whom it starts."""

    gpus: int
    gang: str = ""


class KubeDemand:
    """The port `DemandSource` over mirrors of the cluster."""

    def __init__(self, informers: InformerFactory, *, kueue: bool) -> None:
        self._informers = informers
        self._pods = informers.of(POD, select=Selector(labels=marks.POOL))
        self._by_pool = self._pods.index(by_label(marks.POOL))
        self._workloads = informers.of(WORKLOAD).index(_pools) if kueue else None

    async def demand(self, pool: str) -> Demand:
        if not self._informers.synced or self._informers.troubles:
            why = next(iter(self._informers.troubles), "The cluster's pods have not been seen yet.")
            raise Retry("navarch.queue_unknown", why, after=_SYNC_WAIT)
        pods = [pod for pod in self._by_pool.get(pool) if _alive(pod)]
        waiting = [_waiting(pod) for pod in pods if not pod.spec.node_name]
        for workload in self._workloads.get(pool) if self._workloads is not None else ():
            waiting += _promised(workload, pool)
        return Demand(
            pending=len(waiting),
            running=sum(bool(pod.spec.node_name) for pod in pods),
            busy=_busy(pods),
            waiting=_gangs(waiting),
        )


async def has_kueue(api: KubeApi) -> bool:
    """Reports whether the cluster has Kueue. A failed request counts as yes, so that demand is unknown and not zero."""
    try:
        await api.list(WORKLOAD, "default")
    except (UnknownKind, Denied) as error:
        log.info("no queues of Kueue are read", why=error.sentence)
        return False
    except Retry:
        return True
    return True


def _busy(pods: Iterable[Pod]) -> dict[str, int]:
    used: Counter[str] = Counter()
    for pod in pods:
        if pod.spec.node_name:
            used[pod.spec.node_name] += gpus_of(pod.spec)
    return {node: gpus for node, gpus in used.items() if gpus}


def _gangs(waiting: Sequence[PendingWork]) -> tuple[Gang, ...]:
    alone = [(one.gpus,) for one in waiting if not one.gang]
    gangs: dict[str, list[int]] = {}
    for one in waiting:
        if one.gang:
            gangs.setdefault(one.gang, []).append(one.gpus)
    return (*alone, *(tuple(sizes) for sizes in gangs.values()))


def gpus_of(spec: PodSpec) -> int:
    """The pod's GPUs at one time: all containers together, or its largest init container if that has more."""
    together = sum(_gpus_of(container) for container in spec.containers)
    return max([together, *(_gpus_of(container) for container in spec.init_containers)])


def _gpus_of(container: Container) -> int:
    asked = container.resources.requests | container.resources.limits
    return sum(Quantity.parse(value).whole for name, value in asked.items() if name.endswith("/gpu"))


def _alive(pod: Pod) -> bool:
    """Reports whether a pod needs or will need a node. One that is being deleted does not: its successor is counted."""
    if pod.status.phase in ("Succeeded", "Failed") or pod.meta.deleted is not None:
        return False
    return bool(pod.spec.node_name) or not pod.spec.scheduling_gates


def _waiting(pod: Pod) -> PendingWork:
    name = next((pod.meta.labels[label] for label in _GANGS if label in pod.meta.labels), "")
    return PendingWork(gpus_of(pod.spec), f"{pod.meta.namespace}/{name}" if name else "")


def _pools(workload: Workload) -> Iterable[str]:
    return {pool for pods in workload.spec.pod_sets if (pool := _pool_of(pods))}


def _pool_of(pods: PodSet) -> str:
    template = pods.template
    return template.meta.labels.get(marks.POOL) or template.spec.node_selector.get(marks.POOL, "")


def _promised(workload: Workload, pool: str) -> Iterator[PendingWork]:
    said = workload.status.conditions
    reserved, admitted, finished = (
        (found := condition(said, kind)) is not None and found.holds
        for kind in ("QuotaReserved", "Admitted", "Finished")
    )
    if not reserved or admitted or finished:
        return
    for pods in workload.spec.pod_sets:
        if _pool_of(pods) == pool:
            each = PendingWork(gpus_of(pods.template.spec), f"workload {workload.meta.key}")
            yield from (each for _ in range(pods.count))
