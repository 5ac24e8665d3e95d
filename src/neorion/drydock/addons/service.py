"""A process of this machine as a Service of the cluster: without a selector, with one endpoint on the bridge."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from neorion.drydock.api import Api, Object
from neorion.drydock.cluster import Cluster

NAMESPACE: Final = "kube-system"


async def publish_service(cluster: Cluster, name: str, port: int) -> None:
    """Pods and the API server's aggregator find the process by the Service."""
    ports = [{"name": "main", "port": port, "protocol": "TCP"}]
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"ports": ports},
    }
    endpoints: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [str(cluster.layout.addresses.host)], "conditions": {"ready": True}}],
        "ports": ports,
    }
    async with cluster.api() as api:
        await api.apply(f"/api/v1/namespaces/{NAMESPACE}/services/{name}", service)
        await api.apply(f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/{name}", endpoints)


async def publish_api_service(
    cluster: Cluster,
    api: Api,
    service: str,
    served: tuple[str, str],
    port: int,
    notes: Mapping[str, str] = {},
) -> None:
    """Lets the API server's aggregator answer for a group and version by asking the Service."""
    group, version = served
    name = f"{version}.{group}"
    body: Object = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "annotations": dict(notes)},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": b64encode(cluster.pki.certificate("ca").read_bytes()).decode(),
            "service": {"name": service, "namespace": NAMESPACE, "port": port},
        },
    }
    await api.apply(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}", body)
