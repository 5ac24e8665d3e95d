"""workload_sandboxing: one probe in a sandboxed pod and in an ordinary one, on the same node."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.kinds import NODE, Json, kind
from neorion.conformance.adapters.pods import make_pod, on_node, pod_spec, until_logged
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import sandbox
from neorion.conformance.decide.nodes import environment_of, is_ready
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome

_RUNTIME_CLASS: Final = kind("RuntimeClass", "runtimeclasses", "node.k8s.io/v1", namespaced=False)
# Handlers whose containers share the kernel of their node.
_ORDINARY: Final = frozenset({"runc", "crun", "nvidia", "nvidia-cdi", "nvidia-legacy"})
_LIMITS: Final = (
    "Escapes were not tried: the kernel that a container sees was compared with that of its node.",
)


async def _run(workspace: Workspace) -> Outcome:
    classes = [
        each for each in await workspace.api.list(_RUNTIME_CLASS) if each.get("handler") not in _ORDINARY
    ]
    if not classes:
        return Outcome(missing="There is no RuntimeClass of a sandbox, such as gVisor's or Kata's.")
    hardware = workspace.options.hardware
    chosen = classes[0]
    selector = chosen.get("scheduling", {}).get("nodeSelector", {})
    nodes = [
        node
        for node in await workspace.api.list(NODE)
        if is_ready(node)
        and environment_of(node, hardware=hardware) is not Environment.SIMULATED
        and selector.items() <= node["metadata"].get("labels", {}).items()
    ]
    if not nodes:
        return Outcome(
            missing="No node with a real kubelet can run the sandbox: simulated nodes have no kernel."
        )
    node = nodes[0]
    await _compare(workspace, node, chosen["metadata"]["name"])
    return Outcome(
        environment_of(node, hardware=hardware),
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=_LIMITS,
        subject=chosen["handler"],
    )


async def _compare(workspace: Workspace, node: Json, runtime_class: str) -> None:
    spec = on_node(pod_spec(workspace, None, 0, ("sh", "-c", sandbox.probe_script())), node)
    await make_pod(workspace, "sandboxed", {**spec, "runtimeClassName": runtime_class})
    await make_pod(workspace, "ordinary", spec)
    sandboxed, ordinary = [
        sandbox.kernel_of(await until_logged(workspace, name, "test", sandbox.DONE))
        for name in ("sandboxed", "ordinary")
    ]
    workspace.assert_that(sandbox.is_isolated(sandboxed, node))
    workspace.assert_that(sandbox.has_no_host_network(sandboxed))
    shared = sandbox.is_isolated(ordinary, node)
    workspace.control(control_of("an ordinary container", shared, arose=ordinary is not None))


WORKLOAD_SANDBOXING: Final = Check(
    "workload_sandboxing",
    CheckPlan(
        ("2 Pods",),
        ("a RuntimeClass such as gVisor's or Kata's", "a real kubelet", "an image with a shell"),
        15,
    ),
    _run,
    ("list runtimeclasses.node.k8s.io", "get pods/log"),
)
