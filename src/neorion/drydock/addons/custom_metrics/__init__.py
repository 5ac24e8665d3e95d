"""A custom metrics API whose values are annotations: the right to annotate an object is the right to set its metrics.

Serves metrics of Services and Pods. Measures nothing.
"""

import sys
from base64 import b64encode
from typing import Final

from neorion.drydock.addons.service import NAMESPACE, publish_service
from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.layout import PortOffset
from neorion.drydock.pki import Subject

NAME: Final = "custom-metrics"
GROUP: Final = "custom.metrics.k8s.io"
VERSION: Final = "v1beta2"
# In front of a metric's name, on the object that it describes.
PREFIX: Final = "metrics.conformance.neorion.dev"
# Says to clients that metrics can be set, and how.
SETTABLE: Final = "conformance.neorion.dev/metrics-from-annotations"
_RBAC: Final = "rbac.authorization.k8s.io"


async def start(cluster: Cluster) -> None:
    """Returns when the API server serves the metrics."""
    host, port = str(cluster.layout.addresses.host), cluster.layout.port(PortOffset.CUSTOM_METRICS)
    service = f"{NAME}.{NAMESPACE}.svc"
    cluster.pki.issue(NAME, Subject(f"drydock:{NAME}", hosts=[service, host]))
    cluster.pki.kubeconfig(cluster.layout.kubeconfig_of(NAME), NAME, cluster.layout.server)
    await publish_service(cluster, NAME, port)
    async with cluster.api() as api:
        for path, body in _rights():
            await api.apply(path, body)
        part = Component(NAME, (sys.executable, "-P", "-m", __name__, str(cluster.layout.folder)))
        await cluster.ensure(part)
        bundle = b64encode(cluster.pki.certificate("ca").read_bytes()).decode()
        name = f"{VERSION}.{GROUP}"
        body: Object = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": name, "annotations": {SETTABLE: "true"}},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "caBundle": bundle,
                "service": {"name": NAME, "namespace": NAMESPACE, "port": port},
            },
        }
        await api.apply(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}", body)
        await cluster.until(part, lambda: api.get(f"/apis/{GROUP}/{VERSION}"))


def _rights() -> list[tuple[str, Object]]:
    """It may read the objects that metrics describe; the autoscaler may read the metrics."""
    controller = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": NAMESPACE}
    rules = {
        f"drydock:{NAME}": ([{"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["get", "list"]}],
                            {"kind": "User", "apiGroup": _RBAC, "name": f"drydock:{NAME}"}),
        f"drydock:{NAME}-reader": ([{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list"]}], controller),
    }  # fmt: skip
    found: list[tuple[str, Object]] = []
    for name, (rule, subject) in rules.items():
        role: Object = {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rule,
        }
        reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
        binding: Object = {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": reference,
            "subjects": [subject],
        }
        found.append((f"/apis/{_RBAC}/v1/clusterroles/{name}", role))
        found.append((f"/apis/{_RBAC}/v1/clusterrolebindings/{name}", binding))
    return found
