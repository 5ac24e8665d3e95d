"""Labels, taints and conditions of a Kubernetes node for each state of the node. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from neorion.capacity.node import Condition, Taint, TaintEffect, marks
from neorion.keel.kube import condition
from neorion.keel.kube.core import Node as KubeNode
from neorion.navarch.model import EventKind, Health, Node, NodeState
from neorion.navarch.ports import SchedulingStatus

# Sick or leaving: nothing new, not even a daemon's pod. New and spare ones take daemons, which get them ready for work.
_TAINTS: Final = {
    NodeState.VERIFYING: (marks.VERIFYING, TaintEffect.PREFER_NO_SCHEDULE),
    NodeState.SPARE: (marks.SPARE, TaintEffect.PREFER_NO_SCHEDULE),
    NodeState.CORDONED: (marks.CORDONED, TaintEffect.NO_SCHEDULE),
    NodeState.DRAINING: (marks.DRAINING, TaintEffect.NO_SCHEDULE),
    NodeState.DRAINED: (marks.DRAINING, TaintEffect.NO_SCHEDULE),
}
OUR_TAINTS: Final = frozenset({marks.CORDONED, marks.DRAINING, marks.SPARE, marks.UNHEALTHY, marks.VERIFYING})
OUR_CONDITIONS: Final = frozenset(
    {
        marks.GPU_HEALTHY, marks.MAINTENANCE_PLANNED, marks.MAINTENANCE_IN_PROGRESS, marks.DRAIN_IN_PROGRESS,
        marks.DRAINED,
    }
)  # fmt: skip
# Taints that the cluster itself puts on nodes that are not ready for pods. Others may belong to pools, and pods tolerate them.
_CLUSTER_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_CLOSING: Final = (TaintEffect.NO_SCHEDULE.value, "NoExecute")
# More is cut: the whole of it stands in the node's story.
MESSAGE_MAX: Final = 512


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """The fields of a Kubernetes node that navarch manages. Labels in `labels` with another value are left as they are."""

    away: bool
    own_labels: Mapping[str, str]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    conditions: tuple[Condition, ...]


def signs(node: Node, labels: Mapping[str, str], drain: str = "") -> NodeMarks:
    """Return the marks of a node. `labels` are those of its pool, and `drain` names what a drain waits for."""
    own = {marks.POOL: node.pool, marks.NODE_ID: str(node.id)}
    if node.place.provider:
        own[marks.PROVIDER] = node.place.provider
    return NodeMarks(
        away=not node.state.open,
        own_labels=own,
        labels=labels,
        taints=tuple(_taints(node)),
        conditions=tuple(_conditions(node, drain)),
    )


def scheduling_status(kube: KubeNode) -> SchedulingStatus:
    """Return whether the cluster's scheduler may place Pods on the node now."""
    closing = [
        taint.key
        for taint in kube.spec.taints
        if taint.effect in _CLOSING and taint.key.startswith(_CLUSTER_TAINTS)
    ]
    if kube.spec.unschedulable:
        why = f"{kube.meta.name} is cordoned in the cluster"
    elif not kubelet_ready(kube):
        why = f"the kubelet of {kube.meta.name} is not ready"
    elif closing:
        why = f"{kube.meta.name} has the taint {closing[0]}"
    else:
        return SchedulingStatus(schedulable=True)
    return SchedulingStatus(schedulable=False, sentence=why)


def kubelet_ready(kube: KubeNode) -> bool:
    """Return whether the kubelet reports to the API server, and is well."""
    ready = condition(kube.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def _taints(node: Node) -> list[Taint]:
    found: list[Taint] = []
    if node.state in _TAINTS:
        key, effect = _TAINTS[node.state]
        found.append(Taint.with_reason(key, effect, node.why))
    # A silent agent alone is no reason to refuse work: the cluster itself taints machines that it does not reach.
    silent = node.ailment is not None and node.ailment.signature == EventKind.SILENCE
    if node.health is Health.UNHEALTHY and node.ailment is not None and not silent:
        found.append(Taint.with_reason(marks.UNHEALTHY, TaintEffect.NO_SCHEDULE, node.ailment.signature))
    return found


def _conditions(node: Node, drain: str) -> list[Condition]:
    found: list[Condition] = []
    why = node.why[:MESSAGE_MAX]
    if node.health is not Health.UNKNOWN:
        ailment = node.ailment.sentence[:MESSAGE_MAX] if node.ailment else ""
        healthy = node.health is not Health.UNHEALTHY
        found.append(Condition(marks.GPU_HEALTHY, healthy, node.health.value.capitalize(), ailment))
    match node.state:
        case NodeState.CORDONED:
            found.append(Condition(marks.MAINTENANCE_PLANNED, status=True, reason="Cordoned", message=why))
        case NodeState.DRAINING:
            message = (drain or node.why)[:MESSAGE_MAX]
            found.append(Condition(marks.DRAIN_IN_PROGRESS, status=True, reason="Draining", message=message))
        case NodeState.DRAINED:
            found.append(Condition(marks.DRAINED, status=True, reason="Drained", message=why))
            found.append(Condition(marks.MAINTENANCE_IN_PROGRESS, status=True, reason="Drained", message=why))
        case _:
            pass
    return found
