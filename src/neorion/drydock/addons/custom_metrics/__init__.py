"""A custom metrics API whose values are annotations: the right to annotate an object is the right to set its metrics.

Serves metrics of Services and Pods. Measures nothing.
"""

import sys
from typing import Final

from neorion.drydock.addons.rbac import granted, user
from neorion.drydock.addons.service import NAMESPACE, publish_api_service, publish_service
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
        notes = {SETTABLE: "true"}
        await publish_api_service(cluster, api, NAME, (GROUP, VERSION), port, notes)
        await cluster.until(part, lambda: api.get(f"/apis/{GROUP}/{VERSION}"))


def _rights() -> list[tuple[str, Object]]:
    """It may read the objects that metrics describe; the autoscaler may read the metrics."""
    own = f"drydock:{NAME}"
    controller = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": NAMESPACE}
    described = {"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["get", "list"]}
    metrics = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list"]}
    return [*granted(own, user(own), [described]), *granted(f"{own}-reader", controller, [metrics])]
