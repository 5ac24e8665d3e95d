"""Plays CoreWeave: nodes arrive after their boot time, go when they are not wanted, and fail on request."""

from typing import Any, Final

from msgspec import to_builtins

from neorion.drydock.coreweave.decide import Fault, NodePoolPlan, PoolCondition, PoolNode, decide, fault_of
from neorion.drydock.coreweave.node_marks import (
    CORDON_REASON,
    FRESH,
    PENDING_STATE,
    conditions_of,
    labels_of,
    pending_mark,
)
from neorion.drydock.coreweave.nodepool_types import (
    FAULT,
    MACHINES,
    NODE_POOL,
    NOTICE,
    OLD_NAMES,
    POOL,
    NodeBacking,
    NodePool,
    PoolStatus,
)
from neorion.drydock.coreweave.real_nodes import RealNodeProvisioner
from neorion.drydock.simulated import BOOT_TIME, PLAYED, SILENCE, TYPES, machine_type
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import Condition, KubeApi, MergePatch, ObjectKey, condition, instant, time_text
from neorion.keel.kube.control import (
    Applier,
    Controller,
    EventRecorder,
    InformerFactory,
    Operator,
    owner_key,
    self_key,
)
from neorion.keel.kube.core import LEASE, NODE, POD, Node, Pod

BOOT: Final = Duration.of(seconds=2)
_SLOW: Final = 20
# Longer than any cluster of this kind lives.
_NEVER: Final = "10000h"
_LOST: Final = "drydock.neorion.dev/lost"
_RECLAIMED: Final = "drydock.neorion.dev/reclaimed-at"
_NOTICE: Final = Duration.of(minutes=7)
_RECLAIM: Final = "Spot machine is reclaimed: it leaves within {notice}."
# CoreWeave's names for what becomes of pools.
_EVENTS: Final = {
    ("Quota", False): "CWOverQuota",
    ("Capacity", False): "CWInsufficientCapacity",
    ("AtTarget", True): "CWNodeRegistered",
    ("AtTarget", False): "CWNodeAssigned",
}
_HEALTH_CHECKS: Final = "cw-hpc-verification"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
# A kubelet that finds no Ready condition waits seconds before it reports for the first time, and a cluster takes a node that
# says nothing of itself for one that may have Pods.
_BOOTING: Final = {"type": "Ready", "status": "False", "reason": "Booting"}


class CoreWeaveSimulator:
    """One wheel, for pools; a change of a node or of what runs on it turns it for the pool of that node.

    Real machines have a wheel of their own.
    """

    def __init__(
        self, api: KubeApi, boot: Duration, clock: Clock, rng: Rng, real: RealNodeProvisioner | None = None
    ) -> None:
        self._api = api
        self._boot = boot
        self._clock = clock
        self._real = real
        informers = InformerFactory(api, clock, rng)
        self._informers = informers
        self._pools, self._nodes, pods = informers.of(NODE_POOL), informers.of(NODE), informers.of(POD)
        self._nodes_of = self._nodes.index(lambda node: [node.meta.labels.get(POOL, "")])
        self._pods_on = pods.index(lambda pod: [pod.spec.node_name])
        self._applier = Applier(api, "drydock-coreweave", informers)
        self._recorder = EventRecorder(api, "coreweave", "drydock", clock)
        controller = Controller("nodepools", self._reconcile, clock, rng)
        controller.watch(self._pools, self_key)
        controller.watch(self._nodes, owner_key(NODE_POOL))
        controller.watch(pods, self._pools_of)
        more = [real.controller(self._nodes, rng)] if real is not None else []
        self.operator = Operator(informers, [controller, *more], recorder=self._recorder)

    def _pools_of(self, pod: Pod) -> list[ObjectKey]:
        node = self._nodes.get(ObjectKey("", pod.spec.node_name))
        name = node.meta.labels.get(POOL, "") if node is not None else ""
        return [ObjectKey("", name)] if name else []

    async def _reconcile(self, key: ObjectKey) -> Duration | None:
        pool = self._pools.get(key)
        nodes = {node.meta.name: node for node in self._nodes_of.get(key.name) if not node.meta.deleted}
        if pool is None or pool.meta.deleted:
            # They belong to it, so the garbage collector would see to it too: half a minute later.
            for node in nodes.values():
                await self._applier.delete(NODE, node)
            return None
        notice = Duration.parse(pool.meta.annotations.get(NOTICE) or str(_NOTICE))
        machines = [self._machine(nodes[name], notice) for name in sorted(nodes)]
        real = self._real is not None and self._real.possible
        plan = decide(pool, machines, _INSTANCES, real=real)
        # A machine that is going keeps its name until it is gone.
        taken = set(nodes) | (self._real.names() if self._real is not None else set[str]())
        for name in _free_names(pool, taken, plan.order):
            self._informers.observe(NODE, await self._api.create(NODE, self._manifest(pool, name)))
        for name in plan.remove:
            await self._applier.delete(NODE, nodes[name])
        if plan.lose:
            await self._silence(pool, plan.lose)
            marked = MergePatch({"metadata": {"annotations": {_LOST: "true"}}})
            self._informers.observe(NODE, await self._api.patch(NODE, plan.lose, marked))
        if plan.reclaim:
            await self._reclaim(pool, nodes[plan.reclaim], notice)
        for name in nodes.keys() - set(plan.remove):
            await self._keep_marks(nodes[name])
        await self._report(pool, plan, machines)
        left = [
            self._notice_left(node, notice) for node in nodes.values() if _RECLAIMED in node.meta.annotations
        ]
        return min((span for span in left if span), default=None)

    async def _reclaim(self, pool: NodePool, node: Node, notice: Duration) -> None:
        """One node for each time that the fault is asked for: the pool fills up again by itself."""
        words = _RECLAIM.format(notice=notice)
        meta = pending_mark(words)
        meta["annotations"][_RECLAIMED] = time_text(self._clock.now())
        patch = MergePatch({"metadata": meta, "spec": {"unschedulable": True}})
        self._informers.observe(NODE, await self._api.patch(NODE, node.meta.name, patch))
        done = MergePatch({"metadata": {"annotations": {FAULT: None}}})
        self._informers.observe(NODE_POOL, await self._api.patch(NODE_POOL, pool.meta.name, done))
        self._recorder.tell(NODE_POOL, pool, "CWNodeCordoned", f"{node.meta.name}: {words}", warning=True)

    def _notice_left(self, node: Node, notice: Duration) -> Duration:
        began = node.meta.annotations.get(_RECLAIMED)
        return notice - self._clock.now().since(instant(began)) if began else notice

    async def _keep_marks(self, node: Node) -> None:
        """A node that is up loses the taint of fresh ones, and shows whether anything runs on it."""
        ready = condition(node.status.conditions, "Ready")
        if ready is None or not ready.holds:
            return
        version = {"resourceVersion": node.meta.resource_version}
        if any(taint.key == FRESH["key"] for taint in node.spec.taints):
            taints = [to_builtins(taint) for taint in node.spec.taints if taint.key != FRESH["key"]]
            patch = MergePatch({"metadata": version, "spec": {"taints": taints}})
            self._informers.observe(NODE, await self._api.patch(NODE, node.meta.name, patch))
            return
        words = node.meta.annotations.get(CORDON_REASON, "") if PENDING_STATE in node.meta.labels else ""
        active = any(map(_is_work, self._pods_on.get(node.meta.name)))
        after = conditions_of(node, self._clock.now(), active=active, reclaim=words)
        if after is not node.status.conditions:
            patch = MergePatch({"metadata": version, "status": {"conditions": to_builtins(after)}})
            self._informers.observe(NODE, await self._api.patch(NODE, node.meta.name, patch, "", "status"))

    async def _silence(self, pool: NodePool, name: str) -> None:
        if pool.machines == NodeBacking.REAL and self._real is not None:
            await self._real.lose(name)
        else:
            await self._api.patch(LEASE, name, MergePatch(SILENCE), "kube-node-lease")

    def _machine(self, node: Node, notice: Duration) -> PoolNode:
        ready = condition(node.status.conditions, "Ready")
        return PoolNode(
            name=node.meta.name,
            ready=ready is not None and ready.holds,
            idle=not any(map(_is_work, self._pods_on.get(node.meta.name))),
            lost=_LOST in node.meta.annotations,
            reclaimed=_RECLAIMED in node.meta.annotations,
            expired=not self._notice_left(node, notice),
        )

    async def _report(self, pool: NodePool, plan: NodePoolPlan, machines: list[PoolNode]) -> None:
        staying = [each for each in machines if each.name not in plan.remove]
        current = sum(each.ready for each in staying)
        coming = len(staying) - current + plan.order
        conditions = tuple(self._condition(pool, verdict) for verdict in plan.verdicts)
        said = {verdict.type: verdict.reason for verdict in plan.verdicts}
        status = PoolStatus(
            current_nodes=current,
            in_progress=coming,
            in_progress_nodes=coming,
            queued_nodes=plan.queued,
            capacity=said.get("Capacity", ""),
            quota=said.get("Quota", ""),
            conditions=conditions,
        )
        await self._applier.write_status(NODE_POOL, pool, status)

    def _condition(self, pool: NodePool, verdict: PoolCondition) -> Condition:
        """The condition as it was, unless it has changed. A change is recorded as an Event."""
        status = "True" if verdict.holds else "False"
        kind = "Valid" if verdict.type == "Validated" and OLD_NAMES in pool.meta.annotations else verdict.type
        before = condition(pool.status.conditions, kind)
        turned = before is None or (before.status, before.reason) != (status, verdict.reason)
        if turned and (before is not None or not verdict.holds):
            note = verdict.message or f"{verdict.type} is {status}."
            reason = _EVENTS.get((verdict.type, verdict.holds), verdict.reason)
            self._recorder.tell(NODE_POOL, pool, reason, note, warning=not verdict.holds)
        since = time_text(self._clock.now()) if turned or before is None else before.changed
        return Condition(kind, status, verdict.reason, verdict.message, pool.meta.generation, since)

    def _manifest(self, pool: NodePool, name: str) -> dict[str, Any]:
        machine, spec, meta = machine_type(pool.spec.instance_type), pool.spec, pool.meta
        owner = {
            "apiVersion": NODE_POOL.api_version,
            "kind": NODE_POOL.name,
            "name": meta.name,
            "uid": meta.uid,
        }
        number = int(name.rpartition("-")[2])
        if pool.machines == NodeBacking.REAL:
            marks = {MACHINES: NodeBacking.REAL}
            status: dict[str, Any] = {"conditions": [_BOOTING]}
        else:
            marks = {PLAYED: "fake"}
            status = {
                "capacity": machine.resources,
                "allocatable": machine.resources,
                "conditions": [_BOOTING],
            }
        return {
            "metadata": {
                "name": name,
                "labels": {
                    **labels_of(pool, machine, number),
                    "kubernetes.io/hostname": name,
                    **spec.node_labels,
                },
                "annotations": {**spec.node_annotations, **marks, BOOT_TIME: self._boot_time(pool)},
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
            },
            "spec": {"providerID": f"coreweave://{name}", "taints": [FRESH, *spec.node_taints]},
            "status": status,
        }

    def _boot_time(self, pool: NodePool) -> str:
        match fault_of(pool):
            case Fault.NEVER_READY:
                return _NEVER
            case Fault.SLOW_BOOT:
                return f"{self._boot.seconds * _SLOW}s"
            case _:
                return pool.meta.annotations.get(BOOT_TIME) or f"{self._boot.seconds}s"


_INSTANCES: Final = frozenset(kind.instance for kind in TYPES.values())


def _free_names(pool: NodePool, taken: set[str], count: int) -> list[str]:
    names = (f"{pool.meta.name}-{number}" for number in range(len(taken) + count))
    return [name for name in names if name not in taken][:count]


def _is_work(pod: Pod) -> bool:
    """True for Pods that keep a node. DaemonSets and CoreWeave's own checks do not."""
    owner = pod.meta.controller
    if pod.meta.namespace == _HEALTH_CHECKS:
        return False
    return pod.status.phase not in _ENDED and (owner is None or owner.kind != "DaemonSet")
