"""metrics-server: the processors and memory that real nodes and their pods use, for autoscalers and `kubectl top`."""

from typing import Final

from neorion.drydock.addons.rbac import cluster_binding, granted, user
from neorion.drydock.addons.service import NAMESPACE, publish_api_service, publish_service
from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.layout import PortOffset
from neorion.drydock.pki import Subject
from neorion.drydock.simulated import LABEL

NAME: Final = "metrics-server"
PROGRAMS: Final = ("metrics-server",)
_GROUP: Final = "metrics.k8s.io"
_VERSION: Final = "v1beta1"
_USER: Final = f"drydock:{NAME}"
# Simulated nodes have no kubelet to ask; Karpenter's are simulated, too.
_REAL: Final = f"!{LABEL},!karpenter.sh/nodepool"


async def start(cluster: Cluster) -> None:
    """Returns when the API server serves its kinds. First figures come with the first real node."""
    layout, pki = cluster.layout, cluster.pki
    host, port = str(layout.addresses.host), layout.port(PortOffset.METRICS_SERVER)
    pki.issue(NAME, Subject(_USER, hosts=[f"{NAME}.{NAMESPACE}.svc", host]))
    pki.kubeconfig(layout.kubeconfig_of(NAME), NAME, layout.server)
    kubeconfig = layout.kubeconfig_of(NAME)
    flags = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": host,
        "secure-port": port,
        "tls-cert-file": pki.certificate(NAME),
        "tls-private-key-file": pki.key(NAME),
        "kubelet-certificate-authority": pki.certificate("ca"),
        "kubelet-preferred-address-types": "InternalIP",
        # Longer than a request may take: otherwise it does not start.
        "metric-resolution": "10s",
        "kubelet-request-timeout": "5s",
        "node-selector": _REAL,
    }
    program = cluster.shelf.path(PROGRAMS[0])
    part = Component(NAME, (str(program), *(f"--{flag}={value}" for flag, value in flags.items())))
    await publish_service(cluster, NAME, port)
    async with cluster.api() as api:
        for path, body in _rights():
            await api.apply(path, body)
        await cluster.ensure(part)
        await publish_api_service(cluster, api, NAME, (_GROUP, _VERSION), port)
        await cluster.until(part, lambda: api.get(f"/apis/{_GROUP}/{_VERSION}"))


def _rights() -> list[tuple[str, Object]]:
    """It may read nodes, pods and the figures of kubelets; autoscalers and administrators may read its own."""
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        # The certificate by which it knows the aggregator.
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["extension-apiserver-authentication"],
            "verbs": ["get", "list", "watch"],
        },
    ]
    controller = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": NAMESPACE}
    reading = [{"apiGroups": [_GROUP], "resources": ["*"], "verbs": ["get", "list"]}]
    return [
        *granted(_USER, user(_USER), rules),
        cluster_binding(f"{_USER}-delegator", "system:auth-delegator", user(_USER)),
        *granted(f"{_USER}-reader", controller, reading),
    ]
