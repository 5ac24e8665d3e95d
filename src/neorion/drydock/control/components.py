"""The command lines of the control plane."""

import json
from collections.abc import Mapping
from typing import Final

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.host import Component
from neorion.drydock.layout import LOOPBACK, Layout, PortOffset
from neorion.drydock.pki import Pki

PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
PARTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "log-keeper")
# The defaults of 20 and 30 are for clusters shared by many; here they only make the first seconds slow.
_QPS: Final = {"kube-api-qps": "500", "kube-api-burst": "1000"}
# How soon a lost node is noticed and its pods are given up: seconds, where Kubernetes' defaults are minutes.
_GRACE: Final = "10s"
_TOLERATION: Final = "5"
# The file of a cluster that holds flags for features that are off by default.
FEATURES: Final = "features.json"
# Of a folder. Logs are opened for appending, so emptying one under its writer is safe.
EMPTY_LARGE_LOGS: Final = 'find "$0" -maxdepth 1 -name "*.log" -size +16M -exec truncate --size 0 {} +'


def _part(name: str, shelf: BinaryCache, flags: Mapping[str, object]) -> Component:
    return Component(name, (str(shelf.path(name)), *(f"--{flag}={value}" for flag, value in flags.items())))


def etcd(layout: Layout, pki: Pki, shelf: BinaryCache) -> Component:
    client = f"https://{LOOPBACK}:{layout.port(PortOffset.ETCD)}"
    peer = f"https://{LOOPBACK}:{layout.port(PortOffset.ETCD_PEER)}"
    authority, certificate, key = pki.certificate("ca"), pki.certificate("etcd"), pki.key("etcd")
    return _part(
        "etcd",
        shelf,
        {
            "name": "drydock",
            "data-dir": layout.data("etcd"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"drydock={peer}",
            "client-cert-auth": "true",
            "trusted-ca-file": authority,
            "cert-file": certificate,
            "key-file": key,
            "peer-client-cert-auth": "true",
            "peer-trusted-ca-file": authority,
            "peer-cert-file": certificate,
            "peer-key-file": key,
            # Nothing here has to outlive the machine.
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        },
    )


def api_server(layout: Layout, pki: Pki, shelf: BinaryCache) -> Component:
    return _part(
        "kube-apiserver",
        shelf,
        {
            "etcd-servers": f"https://{LOOPBACK}:{layout.port(PortOffset.ETCD)}",
            "etcd-cafile": pki.certificate("ca"),
            "etcd-certfile": pki.certificate("etcd-client"),
            "etcd-keyfile": pki.key("etcd-client"),
            "bind-address": layout.address,
            # As an endpoint of the Service "kubernetes" a loopback address would be refused, reached or not.
            "advertise-address": layout.addresses.host,
            "secure-port": layout.port(PortOffset.API),
            "cert-dir": layout.data("kube-apiserver"),
            "tls-cert-file": pki.certificate("apiserver"),
            "tls-private-key-file": pki.key("apiserver"),
            "client-ca-file": pki.certificate("ca"),
            "kubelet-client-certificate": pki.certificate("kubelet-client"),
            "kubelet-client-key": pki.key("kubelet-client"),
            "kubelet-certificate-authority": pki.certificate("ca"),
            "kubelet-preferred-address-types": "InternalIP",
            **_aggregation(pki),
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": pki.key("service-accounts").with_suffix(".pub"),
            "service-account-signing-key-file": pki.key("service-accounts"),
            "service-cluster-ip-range": layout.addresses.services,
            "authorization-mode": "Node,RBAC",
            **_gates(layout, "runtime-config"),
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
            "default-not-ready-toleration-seconds": _TOLERATION,
            "default-unreachable-toleration-seconds": _TOLERATION,
        },
    )


def _aggregation(pki: Pki) -> dict[str, object]:
    return {
        "proxy-client-cert-file": pki.certificate("front-client"),
        "proxy-client-key-file": pki.key("front-client"),
        "requestheader-client-ca-file": pki.certificate("front-ca"),
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        # Webhooks and API services that are processes of this machine are called at their endpoint, without kube-proxy.
        "enable-aggregator-routing": "true",
    }


def controller_manager(layout: Layout, pki: Pki, shelf: BinaryCache) -> Component:
    return _part(
        "kube-controller-manager",
        shelf,
        {
            **_as_client(layout, "controller-manager"),
            "secure-port": layout.port(PortOffset.CONTROLLER_MANAGER),
            "service-account-private-key-file": pki.key("service-accounts"),
            "use-service-account-credentials": "true",
            "root-ca-file": pki.certificate("ca"),
            "cluster-signing-cert-file": pki.certificate("ca"),
            "cluster-signing-key-file": pki.key("ca"),
            "controllers": "*,bootstrapsigner,tokencleaner",
            # One range divided among all nodes would not suffice for hundreds of simulated ones.
            "allocate-node-cidrs": "false",
            "node-monitor-period": "1s",
            "node-monitor-grace-period": _GRACE,
            "horizontal-pod-autoscaler-sync-period": "5s",
            **_gates(layout),
        },
    )


def scheduler(layout: Layout, shelf: BinaryCache) -> Component:
    return _part(
        "kube-scheduler",
        shelf,
        {
            **_as_client(layout, "scheduler"),
            "secure-port": layout.port(PortOffset.SCHEDULER),
            **_gates(layout),
        },
    )


def _gates(layout: Layout, *more: str) -> dict[str, object]:
    """The feature gates that an add-on has turned on, and further flags that it has set beside them."""
    path = layout.data(FEATURES)
    if not path.exists():
        return {}
    flags: dict[str, str] = json.loads(path.read_text())
    return {name: flags[name] for name in ("feature-gates", *more) if name in flags}


def _as_client(layout: Layout, who: str) -> dict[str, object]:
    kubeconfig = layout.kubeconfig_of(who)
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": LOOPBACK,
        # There is one of each.
        "leader-elect": "false",
        **_QPS,
    }


def log_keeper(layout: Layout) -> Component:
    argv = ("/bin/sh", "-c", f"while sleep 300; do {EMPTY_LARGE_LOGS}; done", str(layout.logs))
    return Component("log-keeper", argv, {"PATH": "/usr/bin:/bin"})
