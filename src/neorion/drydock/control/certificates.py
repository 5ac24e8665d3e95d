"""Certificates and kubeconfigs that the control plane needs before it can start."""

from typing import Final

from neorion.drydock.layout import LOOPBACK, Layout
from neorion.drydock.pki import Pki, Subject

_MASTERS: Final = ("system:masters",)

# Kubernetes has RBAC rules for these names already.
_CLIENTS: Final = {
    "admin": Subject("drydock-admin", _MASTERS),
    "controller-manager": Subject("system:kube-controller-manager"),
    "scheduler": Subject("system:kube-scheduler"),
}


def _api_server(layout: Layout) -> Subject:
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
    names.append("kubernetes.default.svc.cluster.local")
    # Both addresses, because a cluster can get its network later.
    addresses = [LOOPBACK, str(layout.addresses.host), str(layout.addresses.api)]
    return Subject("kube-apiserver", hosts=[*names, *addresses])


def make_identities(layout: Layout, pki: Pki) -> None:
    """Creates missing certificates. The kubeconfigs are always written, because the server's address may have changed."""
    pki.authority("ca")
    # Certificates of this authority may act for other users, so it is separate from the one for all others.
    pki.authority("front-ca")
    pki.key_pair("service-accounts")
    pki.issue("etcd", Subject("etcd", hosts=["localhost", LOOPBACK]))
    pki.issue("etcd-client", Subject("kube-apiserver-etcd-client"))
    pki.issue("apiserver", _api_server(layout))
    pki.issue("kubelet-client", Subject("kube-apiserver-kubelet-client", _MASTERS))
    pki.issue("front-client", Subject("front-proxy-client"), authority="front-ca")
    for who, subject in _CLIENTS.items():
        pki.issue(who, subject)
        pki.kubeconfig(layout.kubeconfig_of(who), who, layout.server)
    pki.kubeconfig(layout.kubeconfig, "admin", layout.server)
