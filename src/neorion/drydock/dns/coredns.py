"""CoreDNS beside the bridge, and its Service for pods."""

from typing import Final

from neorion.drydock.api import Api, Object
from neorion.drydock.binaries import BinaryCache
from neorion.drydock.host import Component
from neorion.drydock.layout import LOOPBACK, Layout, PortOffset
from neorion.drydock.pki import Pki, Subject

DNS_PROGRAMS: Final = ("coredns",)
_WHO: Final = "coredns"
_PORT: Final = 53

# No `forward`: names outside the cluster do not exist, and no external server is queried.
_COREFILE: Final = """\
.:{port} {{
    bind {host}
    errors
    health {health}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 5
    }}
    cache 5
}}
"""


def dns_part(layout: Layout, pki: Pki, shelf: BinaryCache) -> Component:
    """Writes the configuration and returns the component to run."""
    pki.issue(_WHO, Subject("system:coredns"))
    kubeconfig = layout.kubeconfig_of(_WHO)
    pki.kubeconfig(kubeconfig, _WHO, layout.server)
    corefile = layout.data(_WHO) / "Corefile"
    corefile.parent.mkdir(parents=True, exist_ok=True)
    health = f"{LOOPBACK}:{layout.port(PortOffset.DNS_HEALTH)}"
    corefile.write_text(
        _COREFILE.format(port=_PORT, host=layout.addresses.host, health=health, kubeconfig=kubeconfig)
    )
    return Component(_WHO, (str(shelf.path(_WHO)), "-conf", str(corefile)))


async def publish_dns(layout: Layout, api: Api) -> None:
    """Creates the rights of CoreDNS, and the Service kube-dns without pods."""
    for path, body in (*_rights(), *_service(layout)):
        await api.apply(path, body)


def _rights() -> list[tuple[str, Object]]:
    group = "rbac.authorization.k8s.io"
    name = "system:coredns"
    watched = [("", ["services", "pods", "namespaces"]), ("discovery.k8s.io", ["endpointslices"])]
    role: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [of], "resources": what, "verbs": ["list", "watch"]} for of, what in watched],
    }
    binding: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }
    return [
        (f"/apis/{group}/v1/clusterroles/{name}", role),
        (f"/apis/{group}/v1/clusterrolebindings/{name}", binding),
    ]


def _service(layout: Layout) -> list[tuple[str, Object]]:
    name, namespace = "kube-dns", "kube-system"
    ports = [{"name": f"dns-{kind.lower()}", "port": _PORT, "protocol": kind} for kind in ("UDP", "TCP")]
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {"k8s-app": name}},
        "spec": {"clusterIP": str(layout.addresses.dns), "ports": ports},
    }
    slice_: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [str(layout.addresses.host)], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return [
        (f"/api/v1/namespaces/{namespace}/services/{name}", service),
        (f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}", slice_),
    ]
