"""Spot machines that are taken back: a server stops with its home, and does not wait for another machine."""

from datetime import datetime
from typing import Final

from neorion.devservers.decide.decision import Observed
from neorion.devservers.model import DevServerFlavorSpec
from neorion.keel.kube import condition
from neorion.keel.kube.core import Pod

# Labels by which clouds mark machines that may be taken back.
_SPOT: Final = frozenset(
    {
        ("karpenter.sh/capacity-type", "spot"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
        ("cloud.google.com/gke-spot", "true"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
    }
)
# A scheduler that needs the room is another matter: the machine stays.
_PREEMPTED: Final = "PreemptionByScheduler"


def is_spot(flavor: DevServerFlavorSpec) -> bool:
    return not _SPOT.isdisjoint(flavor.node_selector.items())


def is_interrupted(seen: Observed) -> bool:
    """Return whether its spot machine, or one of them, is taken back. An elastic run goes on with the others."""
    if seen.flavor is None or not is_spot(seen.flavor.spec):
        return False
    if seen.distributed is not None and seen.distributed.min_nodes is not None:
        return False
    since = seen.server.status.running_since
    return any(_is_evicted(pod) and _began_after(pod, since) for pod in seen.pods)


def _is_evicted(pod: Pod) -> bool:
    told = condition(pod.status.conditions, "DisruptionTarget")
    return told is not None and told.holds and told.reason != _PREEMPTED


def _began_after(pod: Pod, since: datetime | None) -> bool:
    """A Pod from before the last start was interrupted before it."""
    return since is None or pod.meta.created is None or datetime.fromisoformat(pod.meta.created) >= since
