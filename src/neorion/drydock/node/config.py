"""The files a node's programs read."""

import json
from pathlib import Path
from typing import Any, Final

from neorion.drydock.images import PAUSE, Registry
from neorion.drydock.node.record import Node
from neorion.drydock.node.spec import MEMORY_SPARE, HostCapacity, reserved
from neorion.drydock.pki import Pki
from neorion.keel.base import NotFound

SOCKET: Final = "/run/containerd/containerd.sock"
# Debian's package, and the place where upstream's archive is unpacked.
_CNI_PROGRAMS: Final = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))


def write_config(node: Node, pki: Pki, registry: Registry, server: str, sandbox: Path | None = None) -> None:
    """Everything in the node's folder that is not data. `sandbox` is the folder of gVisor's programs, if they are built."""
    folder = node.folder
    for name in ("kubelet", "cni", "log", "containerd", "network", "registries/_default"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "resolv.conf").touch()
    (folder / "kubelet.json").write_text(json.dumps(_kubelet(node, pki)))
    (folder / "kube-proxy.json").write_text(json.dumps(_kube_proxy(node)))
    (folder / "containerd.toml").write_text(_containerd(node) + _sandbox(node, sandbox))
    (folder / "network/pods.conflist").write_text(json.dumps(_pod_network(node)))
    (folder / "registries/_default/hosts.toml").write_text(registry.hosts_toml())
    pki.kubeconfig(folder / "kubeconfig", node.part, server)
    pki.kubeconfig(folder / "kube-proxy.kubeconfig", "kube-proxy", server)


def _kubelet(node: Node, pki: Pki) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(node.address),
        "tlsCertFile": str(pki.certificate(node.part)),
        "tlsPrivateKeyFile": str(pki.key(node.part)),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki.certificate("ca"))},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "clusterDNS": [str(node.layout.addresses.dns)],
        "clusterDomain": "cluster.local",
        # Empty: the machine's own name servers are none of the pods' business.
        "resolvConf": str(node.folder / "resolv.conf"),
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        # Without a root of its own, each kubelet of a machine would remove the others' pods as strangers.
        "cgroupRoot": f"/{node.cgroup}/pods",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "systemReserved": reserved(node.spec, HostCapacity.this()),
        "maxPods": node.spec.pods,
        "serializeImagePulls": False,
        # All nodes share the machine's disk: what fills it is not theirs to judge.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "memory.available": str(MEMORY_SPARE),
        },
        # A lost node is noticed in seconds, where the defaults take most of a minute.
        "nodeStatusUpdateFrequency": "2s",
        "nodeLeaseDurationSeconds": 8,
    }


def _kube_proxy(node: Node) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(node.folder / "kube-proxy.kubeconfig")},
        "hostnameOverride": node.name,
        "mode": "nftables",
        "clusterCIDR": str(node.layout.addresses.pods),
        "bindAddress": str(node.address),
        "metricsBindAddress": "127.0.0.1:10249",
        "healthzBindAddress": f"{node.address}:10256",
        # The machine's limits stay as they are.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def _containerd(node: Node) -> str:
    folder = node.folder
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = "{SOCKET}"
[{cri}]
sandbox_image = "{PAUSE.name}"
# Not every root may raise a process above what it has itself.
restrict_oom_score_adj = true
[{cri}.cni]
bin_dir = "{_cni_programs()}"
conf_dir = "{folder}/network"
[{cri}.registry]
config_path = "{folder}/registries"
"""


def _sandbox(node: Node, programs: Path | None) -> str:
    """The handler of the RuntimeClass `gvisor`."""
    if programs is None:
        return ""
    options = node.folder / "runsc.toml"
    options.write_text(f"""\
binary_name = "{programs / "runsc"}"
[runsc_config]
platform = "systrap"
# The control groups of this machine are of the first version, and the node has a part of them alone.
ignore-cgroups = "true"
""")
    runtimes = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes'
    return f"""\
[{runtimes}.runc]
runtime_type = "io.containerd.runc.v2"
[{runtimes}.runsc]
runtime_type = "io.containerd.runsc.v1"
runtime_path = "{programs / "containerd-shim-runsc-v1"}"
[{runtimes}.runsc.options]
TypeUrl = "io.containerd.runsc.v1.options"
ConfigPath = "{options}"
"""


def _pod_network(node: Node) -> dict[str, Any]:
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "pods0",
                "isGateway": True,
                # The fence lets nothing out, so nothing needs another's address.
                "ipMasq": False,
                # A pod may reach itself through its own Service.
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": str(node.pods)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _cni_programs() -> Path:
    found = next((folder for folder in _CNI_PROGRAMS if (folder / "bridge").exists()), None)
    if found is None:
        raise NotFound(
            "node.no_network_plugins",
            "The programs that give pods their network are not on this machine.",
            hint="Install what nodes need: make system (Debian: containernetworking-plugins).",
        )
    return found
