"""Manifests of test pods, and what a cluster offers to them."""

from collections.abc import Sequence
from typing import Any, Final

from neorion.conformance.adapters.kinds import NODE, POD, Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import NodeSupply, environment_of, is_ready, supplies, tolerations
from neorion.conformance.model import Environment
from neorion.keel.base import Error

# Longer than any check takes.
FOREVER: Final = ("sh", "-c", "sleep 3600")
MOMENT: Final = ("sh", "-c", "sleep 2")
NO_HTTP_CLIENT: Final = "Requests need a package that is not installed: pip install 'neorion[conformance]'."
NO_REAL_NODE: Final = "No node has a real kubelet: pods of simulated nodes answer no requests."


async def node_supplies(workspace: Workspace) -> list[NodeSupply]:
    """The nodes with accelerators of the run's profile, those with the most free ones first."""
    options = workspace.options
    nodes = await workspace.api.list(NODE)
    pods = await workspace.api.list(POD)
    return supplies(nodes, pods, options.profile.resource, hardware=options.hardware)


async def real_node(workspace: Workspace) -> Json | None:
    """A ready node whose pods run; None if all are simulated."""
    hardware = workspace.options.hardware
    for node in await workspace.api.list(NODE):
        if is_ready(node) and environment_of(node, hardware=hardware) is not Environment.SIMULATED:
            return node
    return None


def pod_spec(
    workspace: Workspace, node: NodeSupply | None, accelerators: int, command: Sequence[str] = FOREVER
) -> Json:
    """A pod of one container, on one node if one is given, restricted as the strictest admission wants it."""
    resources: Json = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}}
    if accelerators:
        resources["limits"][workspace.options.profile.resource] = str(accelerators)
    placed: Json = {}
    if node is not None:
        placed = {
            "nodeSelector": {"kubernetes.io/hostname": node.hostname},
            "tolerations": tolerations(node.taints),
        }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "test",
                "image": workspace.options.image,
                "command": list(command),
                "resources": resources,
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
        **placed,
    }


def on_node(spec: Json, node: Json) -> Json:
    """The pod on this very node, whether it has accelerators or not."""
    hostname = node["metadata"]["labels"]["kubernetes.io/hostname"]
    taints = node["spec"].get("taints") or ()
    return {
        **spec,
        "nodeSelector": {"kubernetes.io/hostname": hostname},
        "tolerations": tolerations(taints),
    }


# Simulated nodes end the pods of Jobs by themselves, unless they say how long they run.
RUNS_ON: Final = {"drydock.neorion.dev/runs-for": "1h"}


async def make_pod(workspace: Workspace, name: str, spec: Json, labels: dict[str, str] | None = None) -> Json:
    return await workspace.create(POD, name, {"spec": spec}, labels or {})


def named(pods: Sequence[Json], **labels: str) -> list[Json]:
    """Those of the pods that carry all of the labels."""

    def fits(pod: Json) -> bool:
        own: dict[str, Any] = pod["metadata"].get("labels", {})
        return all(own.get(key) == value for key, value in labels.items())

    return [pod for pod in pods if fits(pod)]


async def until_logged(workspace: Workspace, pod: str, container: str, last: str) -> str:
    """The log of a container once it holds the text, or as it is when the patience is over."""
    until = workspace.clock.monotonic() + workspace.options.patience.seconds
    log = ""
    while last not in log and workspace.clock.monotonic() < until:
        try:
            log = await workspace.api.logs(pod, workspace.namespace, container)
        except Error:
            # The container has not begun.
            log = ""
        if last not in log:
            await workspace.clock.sleep(workspace.pause)
    return log
