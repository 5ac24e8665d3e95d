"""Resize of a server from its current flavor to the one in its spec.

CPU and memory change in place where Kubernetes can do it. Everything else needs another pod. The old pod ends first,
because the home can be mounted only once.
"""

from collections.abc import Mapping
from enum import StrEnum

from neorion.devservers.decide.names import SHM_VOLUME
from neorion.devservers.model import DevServerFlavorSpec
from neorion.keel.base import Quantity
from neorion.keel.kube import condition
from neorion.keel.kube.core import Pod
from neorion.keel.kube.core.pods import ResourceRequirements

Amounts = Mapping[str, int | str]
Parts = dict[str, Amounts]

_LIVE = frozenset({"cpu", "memory"})


class ResizeMode(StrEnum):
    """Kind of change that a resize needs."""

    NONE = "none"
    IN_PLACE = "in place"
    RECREATE = "recreate"


def change(pod: Pod, flavor: DevServerFlavorSpec, applied: ResourceRequirements) -> ResizeMode:
    """`applied` is what the server's pods were last asked to have; the pod may have more, which the cluster gave it."""
    standing = pod.spec.containers[0].resources
    have: Parts = {"requests": standing.requests, "limits": standing.limits}
    want: Parts = {"requests": requested(flavor), "limits": flavor.resources.limits}
    differing = {
        name for part in want for name in want[part] if not _same(have[part].get(name), want[part][name])
    }
    asked: Parts = {"requests": applied.requests, "limits": applied.limits}
    dropped = any(name in asked[part] for part in have for name in have[part].keys() - want[part].keys())
    if not _fits_node(pod, flavor) or not _has_shm(pod, flavor) or dropped or differing - _LIVE:
        # A running pod may get more or less of something, and cannot lose it altogether.
        return ResizeMode.RECREATE
    if not differing:
        # The pod keeps the amounts it was asked to have, even where its node can never give them.
        return ResizeMode.RECREATE if pending(pod) == "Infeasible" else ResizeMode.NONE
    able = bool(pod.spec.node_name) and all(
        one.resources is not None for one in pod.status.containers if one.state.running
    )
    possible = able and _quality(have) == _quality(want)
    return ResizeMode.IN_PLACE if possible else ResizeMode.RECREATE


def pending(pod: Pod) -> str:
    """Why the pod has not got the amounts it was last asked to have; "" once it has, as far as its kubelet says.

    "Deferred" until its node has the room, "Infeasible" where that node never will, "Unheard" before the kubelet knows.
    """
    told = condition(pod.status.conditions, "PodResizePending")
    if told is not None and told.holds and not _is_old(told.observed_generation, pod):
        return told.reason
    return "Unheard" if _is_old(pod.status.observed_generation, pod) else ""


def _is_old(observed: int, pod: Pod) -> bool:
    """Older kubelets do not say which generation they speak of."""
    return 0 < observed < pod.meta.generation


def _same(have: object, want: object) -> bool:
    if have is None or want is None:
        return have is want
    # Mostly the very same text: reading it as a number was half the cost of a decision.
    return str(have) == str(want) or Quantity.parse(have) == Quantity.parse(want)


def _fits_node(pod: Pod, flavor: DevServerFlavorSpec) -> bool:
    return dict(pod.spec.node_selector) == dict(flavor.node_selector)


def _has_shm(pod: Pod, flavor: DevServerFlavorSpec) -> bool:
    """Reports whether the pod has the flavor's shared memory, which cannot change in a running pod."""
    shared = next((one.empty_dir for one in pod.spec.volumes if one.name == SHM_VOLUME), None)
    return _same((shared or {}).get("sizeLimit"), flavor.shm)


def requested(flavor: DevServerFlavorSpec) -> Amounts:
    """Requests of a flavor. As in Kubernetes, a limit without a request counts as the request."""
    return {**flavor.resources.limits, **flavor.resources.requests}


def _quality(resources: Parts) -> str:
    """Kubernetes' class of service, which a running pod cannot leave."""
    requests, limits = resources["requests"], resources["limits"]
    if not requests and not limits:
        return "BestEffort"
    whole = all(name in limits and _same(requests.get(name, limits[name]), limits[name]) for name in _LIVE)
    return "Guaranteed" if whole else "Burstable"
