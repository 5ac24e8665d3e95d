"""Which pods leave a node, which stay, and which are waited for. Values in, values out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from neorion.keel.base import Duration, Instant
from neorion.keel.kube import instant
from neorion.keel.kube.core import Pod

_MIRROR: Final = "kubernetes.io/config.mirror"
# By these the owners of pods ask autoscalers to let them finish.
_KEEP: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
# Kubernetes' own, for pods that say nothing.
_GRACE_S: Final = 30
# After the deadline a pod gets no more than this to stop.
LAST_GRACE: Final = Duration.of(seconds=30)
# So long after its end a pod will not be stopped by its node: the kubelet is gone or hangs.
_ABANDONED: Final = Duration.of(seconds=60)
# Pods that a sentence names.
_NAMES_MAX: Final = 3


class LocalData(StrEnum):
    """Handling of pods with an emptyDir, whose data is lost with them: evict them, or wait until the deadline."""

    DELETE = "delete"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class DrainRules:
    """`grace` is the most that a pod gets to stop; None leaves it to the pod."""

    grace: Duration | None = None
    local_data: LocalData = LocalData.DELETE


class PodAction(StrEnum):
    """Action for one pod of a node that is drained."""

    STAYS = "stays"
    EVICT = "evict"
    DELETE = "delete"
    STOPPING = "stopping"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class DrainContext:
    """Facts about the drain that all its pods share. `left` is the time that remains; a `silent` node confirms nothing."""

    now: Instant
    left: Duration
    silent: bool
    rules: DrainRules

    @property
    def over(self) -> bool:
        return not self.left > Duration(0)


@dataclass(frozen=True, slots=True)
class PodEviction:
    """One pod and its way; `why` is what keeps it, if anything does."""

    pod: Pod
    way: PodAction
    why: str = ""
    grace: Duration = field(default=LAST_GRACE)


def plan_evictions(pods: Sequence[Pod], scene: DrainContext) -> list[PodEviction]:
    """In the order of their names, so that every look tells the same."""
    return [_exit(pod, scene) for pod in sorted(pods, key=lambda pod: pod.meta.key)]


def _exit(pod: Pod, scene: DrainContext) -> PodEviction:
    if _belongs_to_node(pod) or pod.status.phase in ("Succeeded", "Failed"):
        return PodEviction(pod, PodAction.STAYS)
    if pod.meta.deleted is not None:
        return _stopping(pod, instant(pod.meta.deleted), scene)
    grace = _grace(pod, scene)
    if scene.over:
        return PodEviction(pod, PodAction.DELETE, "its time is over", grace)
    kept = _kept(pod, scene.rules)
    return PodEviction(pod, PodAction.WAIT, kept) if kept else PodEviction(pod, PodAction.EVICT, grace=grace)


def _belongs_to_node(pod: Pod) -> bool:
    """Daemons come back at once wherever they are evicted from, and mirrors are only pictures of what the kubelet runs."""
    controller = pod.meta.controller
    return _MIRROR in pod.meta.annotations or (controller is not None and controller.kind == "DaemonSet")


def _stopping(pod: Pod, gone_by: Instant, scene: DrainContext) -> PodEviction:
    if gone_by + _ABANDONED < scene.now and (scene.silent or scene.over):
        return PodEviction(pod, PodAction.STAYS)
    if scene.over and scene.now + LAST_GRACE < gone_by:
        return PodEviction(pod, PodAction.DELETE, "its time is over")
    return PodEviction(pod, PodAction.STOPPING, "is stopping")


def _grace(pod: Pod, scene: DrainContext) -> Duration:
    own = Duration.of(seconds=pod.spec.grace_s if pod.spec.grace_s is not None else _GRACE_S)
    most = LAST_GRACE if scene.over else scene.left
    return min(own, most, scene.rules.grace if scene.rules.grace is not None else own)


def _kept(pod: Pod, rules: DrainRules) -> str:
    for key, value in _KEEP.items():
        if pod.meta.annotations.get(key) == value:
            return f"asks by {key} to be left until it ends"
    local = any(volume.empty_dir is not None for volume in pod.spec.volumes)
    return "has data in an emptyDir" if local and rules.local_data is LocalData.WAIT else ""


def describe(left: Sequence[PodEviction]) -> str:
    """Describes the remaining pods: "2 pods are left: a/x has data in an emptyDir; a/y is stopping."."""
    if not left:
        return "no pods are left but those of the node itself"
    # What stops by itself says little: what holds everything up comes first.
    order = sorted(left, key=lambda one: one.way is PodAction.STOPPING)
    told = [f"{one.pod.meta.key} {one.why or 'is asked to leave'}" for one in order[:_NAMES_MAX]]
    more = f"; and {len(order) - _NAMES_MAX} more" if len(order) > _NAMES_MAX else ""
    count = "1 pod is left" if len(left) == 1 else f"{len(left)} pods are left"
    return f"{count}: {'; '.join(told)}{more}"
