"""Third-party programs that drydock runs, each pinned by a Go module under `tools/`."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neorion.keel.base import NotFound, did_you_mean

_TOOLS: Final = Path(__file__).parent.parent / "tools"
_GITHUB: Final = "https://github.com"


def _no_stamp(version: str) -> dict[str, str]:
    del version
    return {}


def _kubernetes_stamp(version: str) -> dict[str, str]:
    # Without it every node reports the version v0.0.0-master.
    major, minor, _ = version.removeprefix("v").split(".", 2)
    words = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return {f"k8s.io/component-base/version.{word}": value for word, value in words.items()}


def _kueue_stamp(version: str) -> dict[str, str]:
    return {"sigs.k8s.io/kueue/pkg/version.GitVersion": version}


def _gvisor_stamp(version: str) -> dict[str, str]:
    return {"gvisor.dev/gvisor/runsc/version.version": version}


@dataclass(frozen=True, slots=True)
class Release:
    """The published programs of a product: each as a file, or in an archive as `member`.

    `{program}`, `{version}`, `{number}` (without its "v") and `{arch}` are filled in. `sums` is the address of their SHA-256,
    in which `{address}` is that of the file itself; empty where none are published.
    """

    address: str
    sums: str = ""
    member: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """One product to build: `package` of the Go module in `tools/<name>`, with the versions that `module` selects.

    All `programs` are one file under several names where they are more than one. `stamp` gives the variables that a
    release would be linked with.
    """

    name: str
    module: str
    package: str
    programs: tuple[str, ...]
    stamp: Callable[[str], dict[str, str]] = _no_stamp
    tools: Path = _TOOLS
    # Build tags: unused parts are left out.
    tags: str = ""
    release: Release | None = None

    @property
    def source(self) -> Path:
        return self.tools / self.name

    @property
    def version(self) -> str:
        found = re.search(
            rf"^(?:require)?\s*{re.escape(self.module)} (v\S+)",
            (self.source / "go.mod").read_text(),
            re.MULTILINE,
        )
        if found is None:
            raise LookupError(f"{self.source}/go.mod does not require {self.module}")
        return found[1]

    @property
    def digest(self) -> str:
        """A digest of the build's inputs, without the Go version: a newer Go is not a reason to build again."""
        content = b"".join(path.read_bytes() for path in sorted(self.source.iterdir()))
        return hashlib.sha256(content).hexdigest()[:12]


PRODUCTS: Final = (
    Product(
        "etcd",
        "go.etcd.io/etcd/server/v3",
        "go.etcd.io/etcd/server/v3",
        ("etcd",),
        release=Release(
            f"{_GITHUB}/etcd-io/etcd/releases/download/{{version}}/etcd-{{version}}-linux-{{arch}}.tar.gz",
            f"{_GITHUB}/etcd-io/etcd/releases/download/{{version}}/SHA256SUMS",
            "etcd-{version}-linux-{arch}/{program}",
        ),
    ),
    Product(
        "kubernetes",
        "k8s.io/kubernetes",
        ".",
        (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubectl",
            "kubelet",
            "kube-proxy",
        ),
        _kubernetes_stamp,
        release=Release("https://dl.k8s.io/release/{version}/bin/linux/{arch}/{program}", "{address}.sha256"),
    ),
    Product(
        "kwok",
        "sigs.k8s.io/kwok",
        "sigs.k8s.io/kwok/cmd/kwok",
        ("kwok",),
        release=Release(f"{_GITHUB}/kubernetes-sigs/kwok/releases/download/{{version}}/kwok-linux-{{arch}}"),
    ),
    Product(
        "coredns",
        "github.com/coredns/coredns",
        "github.com/coredns/coredns",
        ("coredns",),
        release=Release(
            f"{_GITHUB}/coredns/coredns/releases/download/{{version}}/coredns_{{number}}_linux_{{arch}}.tgz",
            "{address}.sha256",
            "{program}",
        ),
    ),
    Product(
        "prometheus",
        "github.com/prometheus/prometheus",
        "github.com/prometheus/prometheus/cmd/promtool",
        ("promtool",),
        # It only checks rules, so it needs no discovery of clouds.
        tags="remove_all_sd",
    ),
    Product(
        "prometheus-server",
        "github.com/prometheus/prometheus",
        "github.com/prometheus/prometheus/cmd/prometheus",
        ("prometheus",),
        # Workloads are discovered through the API server, not through a cloud.
        tags="remove_all_sd,enable_kubernetes_sd",
    ),
    # With the provider that simulates a cloud by nodes of KWOK.
    Product("karpenter", "sigs.k8s.io/karpenter", "sigs.k8s.io/karpenter/kwok", ("karpenter",)),
    Product(
        "traefik", "github.com/traefik/traefik/v3", "github.com/traefik/traefik/v3/cmd/traefik", ("traefik",)
    ),
    # The scheduler with the plugin Coscheduling, among others.
    Product(
        "scheduler-plugins",
        "sigs.k8s.io/scheduler-plugins",
        "sigs.k8s.io/scheduler-plugins/cmd/scheduler",
        ("coscheduling-scheduler",),
    ),
    Product("jobset", "sigs.k8s.io/jobset", "sigs.k8s.io/jobset", ("jobset",)),
    # From the branch that the Go tools can build.
    Product("gvisor", "gvisor.dev/gvisor", ".", ("runsc", "containerd-shim-runsc-v1"), _gvisor_stamp),
    # Upstream publishes images and manifests, but no program.
    Product("kueue", "sigs.k8s.io/kueue", "sigs.k8s.io/kueue/cmd/kueue", ("kueue",), _kueue_stamp),
)


def product_named(name: str) -> Product:
    names = {product.name: product for product in PRODUCTS}
    if name not in names:
        raise NotFound(
            "drydock.no_product", f'The product "{name}" does not exist.', hint=did_you_mean(name, names)
        )
    return names[name]


def product_of(program: str) -> Product:
    return next(product for product in PRODUCTS if program in product.programs)
