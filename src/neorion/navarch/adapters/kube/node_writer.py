"""The one hand that writes on Kubernetes nodes: only what is navarch's, only where it differs."""

from typing import Any, Final

from neorion.capacity.node import Condition, Taint
from neorion.keel.clock import Clock
from neorion.keel.kube import KubeApi, MergePatch, condition, time_text
from neorion.keel.kube.core import NODE
from neorion.keel.kube.core import Node as KubeNode
from neorion.keel.kube.core.nodes import Taint as KubeTaint
from neorion.navarch.adapters.kube.node_marks import OUR_CONDITIONS, OUR_TAINTS, NodeMarks

# The field manager: what it applied and no longer wants goes away, and what others hold too stays.
MANAGER: Final = "navarch"


class NodeWriter:
    """Brings a Kubernetes node to its signs.

    A person's cordon, labels, taints and conditions are other managers' fields and stay as they are. Every write names the uid:
    a node that was deleted meanwhile is not made again.
    """

    def __init__(self, api: KubeApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def write(self, kube: KubeNode, wanted: NodeMarks) -> KubeNode:
        kube = await self._write_spec(kube, wanted)
        kube = await self._write_taints(kube, wanted.taints)
        return await self._write_conditions(kube, wanted.conditions)

    async def _write_spec(self, kube: KubeNode, wanted: NodeMarks) -> KubeNode:
        there = kube.meta.labels
        labels = {key: value for key, value in wanted.labels.items() if there.get(key, value) == value}
        labels |= wanted.own_labels
        same = all(there.get(key) == value for key, value in labels.items())
        if same and kube.spec.unschedulable == wanted.away:
            return kube
        spec = {"spec": {"unschedulable": True}} if wanted.away else {}
        body = {"metadata": {**_identity(kube), "labels": labels}, **spec}
        return await self._api.apply(NODE, body, MANAGER, force=True)

    async def _write_taints(self, kube: KubeNode, wanted: tuple[Taint, ...]) -> KubeNode:
        """The list of taints has one owner in the API, so it is written whole, and only over the version it was read from."""
        theirs = [one for one in kube.spec.taints if one.key not in OUR_TAINTS]
        ours = {(one.key, one.value, one.effect) for one in kube.spec.taints if one.key in OUR_TAINTS}
        if ours == {(one.key, one.value, one.effect.value) for one in wanted}:
            return kube
        body = {
            "metadata": {"resourceVersion": kube.meta.resource_version, "uid": kube.meta.uid},
            "spec": {"taints": [*map(_taint, theirs), *(_new_taint(one) for one in wanted)] or None},
        }
        return await self._api.patch(NODE, kube.meta.name, MergePatch(body))

    async def _write_conditions(self, kube: KubeNode, wanted: tuple[Condition, ...]) -> KubeNode:
        there = {
            (one.type, one.status, one.reason, one.message)
            for one in kube.status.conditions
            if one.type in OUR_CONDITIONS
        }
        if there == {(one.type, str(one.status), one.reason, one.message) for one in wanted}:
            return kube
        conditions = [self._condition(kube, one) for one in wanted]
        body = {"metadata": _identity(kube), "status": {"conditions": conditions}}
        return await self._api.apply(NODE, body, MANAGER, force=True, subresource="status")

    def _condition(self, kube: KubeNode, wanted: Condition) -> dict[str, Any]:
        now = time_text(self._clock.now())
        before = condition(kube.status.conditions, wanted.type)
        changed = before is None or before.status != str(wanted.status) or before.changed is None
        return {
            "type": wanted.type,
            "status": str(wanted.status),
            "reason": wanted.reason,
            "message": wanted.message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now if changed or before is None else before.changed,
        }


def _identity(kube: KubeNode) -> dict[str, Any]:
    return {"name": kube.meta.name, "uid": kube.meta.uid}


def _taint(one: KubeTaint) -> dict[str, Any]:
    """An existing taint, unchanged, with the time at which it was added."""
    added = {"timeAdded": one.added} if one.added else {}
    value = {"value": one.value} if one.value else {}
    return {"key": one.key, "effect": one.effect, **value, **added}


def _new_taint(one: Taint) -> dict[str, Any]:
    return {"key": one.key, "effect": one.effect.value} | ({"value": one.value} if one.value else {})
