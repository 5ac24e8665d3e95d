"""Kueue as a process of this machine: quotas and gangs without a node to run it on."""

import json
from base64 import b64encode
from functools import partial
from pathlib import Path
from typing import Any, Final

from neorion.drydock.api import Api
from neorion.drydock.binaries import Tell, build_missing, ignore_progress
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component, running
from neorion.drydock.installed_objects import WebhookHost, publish_objects, without_processes
from neorion.drydock.layout import LOOPBACK, Layout, PortOffset
from neorion.drydock.pki import Subject, rsa_key
from neorion.keel.base import Retry

Manifest = dict[str, Any]

_WHO: Final = "kueue"
_NAMESPACE: Final = "kueue-system"
# With its own rights and by its own name, as elsewhere: policies of a cluster know Kueue by it.
_USER: Final = f"system:serviceaccount:{_NAMESPACE}:kueue-controller-manager"
_GROUPS: Final = ("system:serviceaccounts", f"system:serviceaccounts:{_NAMESPACE}")
_SERVICE: Final = "kueue-webhook-service"
_SECRET: Final = "kueue-webhook-server-cert"  # noqa: S105 -- the name of one
# The name that Kueue looks for in its authority's certificate; without it, and without an RSA key, it makes its own.
_AUTHORITY_HOST: Final = "kueue-ca"
# Of JobSets it takes care once their kind is there.
_FRAMEWORKS: Final = ["batch/job", "pod", "deployment", "statefulset", "jobset.x-k8s.io/jobset"]
_API: Final = "/apis/kueue.x-k8s.io/v1beta2"
# The last to be taken up.
_LARGEST: Final = "workloads"
# One of each source of its rights: what everybody has, its cluster role, and its role for certificates.
_NEEDED: Final[tuple[Manifest, ...]] = (
    {"nonResourceAttributes": {"path": "/api", "verb": "get"}},
    {"resourceAttributes": {"group": "kueue.x-k8s.io", "resource": _LARGEST, "verb": "list"}},
    {"resourceAttributes": {"namespace": _NAMESPACE, "resource": "secrets", "verb": "update"}},
)


async def start_kueue(cluster: Cluster, tell: Tell = ignore_progress) -> None:
    """Installs it, starts it, and returns when it decides about workloads."""
    layout = cluster.layout
    await build_missing(cluster.shelf, [_WHO], tell)
    _make_identities(cluster)
    source = cluster.shelf.path("kueue").parent / "manifests.json"
    hosted = WebhookHost(cluster.pki.certificate("kueue-ca"), layout.port(PortOffset.KUEUE_WEBHOOK))
    items = [*without_processes(json.loads(source.read_text()), hosted), _secret(cluster)]
    # First: with some of its webhooks there and nobody behind them no pod can be made, and `resume_kueue` must know.
    layout.data("kueue.json").write_text(json.dumps(_configuration(layout)))
    async with cluster.api() as api:
        await publish_objects(api, items)
        await _until_served(cluster, api)
        await _until_allowed(cluster, api)
    await _start(cluster)


async def _until_served(cluster: Cluster, api: Api) -> None:
    """Kueue reads and writes all of its kinds again whenever one of them changes, and the API server changes each as it takes it up."""
    _, server, *_ = cluster.control_plane()

    async def served() -> None:
        found = {each["name"] for each in (await api.get(_API))["resources"]}
        if _LARGEST not in found:
            raise Retry(
                "kueue.starting", "Kueue's kinds are not served yet.", hint="They will be in a moment."
            )

    await cluster.until(server, served)


async def _until_allowed(cluster: Cluster, api: Api) -> None:
    """The API server learns of rights a moment after they were written. Kueue, refused at its start, stays up and does nothing."""
    _, server, *_ = cluster.control_plane()
    who = {"user": _USER, "groups": [*_GROUPS, "system:authenticated"]}

    async def allowed(asked: Manifest) -> None:
        review: Manifest = {"spec": {**who, **asked}}
        answer = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        if not answer["status"]["allowed"]:
            raise Retry("kueue.starting", "Kueue has no rights yet.", hint="It will have in a moment.")

    for asked in _NEEDED:
        await cluster.until(server, partial(allowed, asked))


async def _start(cluster: Cluster) -> None:
    part, layout = _part(cluster), cluster.layout
    # Written again: the server's address may have changed.
    cluster.pki.kubeconfig(layout.kubeconfig_of("kueue"), "kueue", layout.server)
    await cluster.ensure(part)
    await cluster.answers(part, layout.port(PortOffset.KUEUE_HEALTH))
    await cluster.reachable(part, layout.port(PortOffset.KUEUE_WEBHOOK))


async def resume_kueue(cluster: Cluster, tell: Tell = ignore_progress) -> None:
    """Where it was, it goes on; also where it was broken off in the middle of its installation."""
    if cluster.layout.data("kueue.json").exists() and not running(cluster.layout.folder, _WHO):
        await start_kueue(cluster, tell)


def _part(cluster: Cluster) -> Component:
    layout = cluster.layout
    flags = {
        "config": layout.data("kueue.json"),
        "feature-gates": "VisibilityOnDemand=false",
        "kubeconfig": layout.kubeconfig_of("kueue"),
        "zap-log-level": "error",
    }
    return Component(
        _WHO, (str(cluster.shelf.path("kueue")), *(f"--{flag}={value}" for flag, value in flags.items()))
    )


def _make_identities(cluster: Cluster) -> None:
    pki, layout = cluster.pki, cluster.layout
    pki.issue("kueue", Subject(_USER, _GROUPS))
    pki.authority("kueue-ca", hosts=[_AUTHORITY_HOST], make_key=rsa_key)
    hosts = [f"{_SERVICE}.{_NAMESPACE}.svc", LOOPBACK]
    pki.issue("kueue-webhook", Subject(_SERVICE, hosts=hosts), authority="kueue-ca")
    folder = _certificates(layout)
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, content in _files(cluster).items():
        (folder / name).write_bytes(content)


def _certificates(layout: Layout) -> Path:
    return layout.data("kueue-certificates")


def _files(cluster: Cluster) -> dict[str, bytes]:
    pki = cluster.pki
    return {
        "ca.crt": pki.certificate("kueue-ca").read_bytes(),
        "ca.key": pki.key("kueue-ca").read_bytes(),
        "tls.crt": pki.certificate("kueue-webhook").read_bytes(),
        "tls.key": pki.key("kueue-webhook").read_bytes(),
    }


def _secret(cluster: Cluster) -> Manifest:
    """Where Kueue looks for its certificates before it makes any: it finds ours, which are good for a loopback address."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _SECRET, "namespace": _NAMESPACE},
        "data": {name: b64encode(content).decode() for name, content in _files(cluster).items()},
    }


def _configuration(layout: Layout) -> Manifest:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": _NAMESPACE,
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{layout.port(PortOffset.KUEUE_HEALTH)}"},
        "metrics": {"bindAddress": f"{LOOPBACK}:{layout.port(PortOffset.KUEUE_METRICS)}"},
        "webhook": {
            "host": LOOPBACK,
            "port": layout.port(PortOffset.KUEUE_WEBHOOK),
            "certDir": str(_certificates(layout)),
        },
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 500, "burst": 1000},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": _SERVICE,
            "webhookSecretName": _SECRET,
        },
        "integrations": {"frameworks": _FRAMEWORKS},
    }
