"""A process of this machine as a Service of the cluster: without a selector, with one endpoint on the bridge."""

from collections.abc import Mapping

from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster

NAMESPACE = "kube-system"


async def publish_service(cluster: Cluster, name: str, port: int, labels: Mapping[str, str] = {}) -> None:
    """Pods, the API server's proxy and its aggregator find the process by the Service."""
    ports = [{"name": "main", "port": port, "protocol": "TCP"}]
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
        "spec": {"ports": ports},
    }
    endpoints: Object = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "subsets": [{"addresses": [{"ip": str(cluster.layout.addresses.host)}], "ports": ports}],
    }
    async with cluster.api() as api:
        await api.apply(f"/api/v1/namespaces/{NAMESPACE}/services/{name}", service)
        # The API server's proxy reads no EndpointSlices; a controller makes them from this.
        await api.apply(f"/api/v1/namespaces/{NAMESPACE}/endpoints/{name}", endpoints)
