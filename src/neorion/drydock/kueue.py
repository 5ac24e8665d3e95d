"""Kueue as a process of this machine: quotas and gang scheduling without a node for it."""

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
# With its usual user name and rights, because policies of a cluster refer to them.
_USER: Final = f"system:serviceaccount:{_NAMESPACE}:kueue-controller-manager"
_GROUPS: Final = ("system:serviceaccounts", f"system:serviceaccounts:{_NAMESPACE}")
_SERVICE: Final = "kueue-webhook-service"
_SECRET: Final = "kueue-webhook-server-cert"  # noqa: S105 -- the name of a secret
# The host name that Kueue requires in its authority's certificate. Without it, and without an RSA key, it creates its
# own.
_AUTHORITY_HOST: Final = "kueue-ca"
# JobSets are served once their kind exists.
_FRAMEWORKS: Final = ["batch/job", "pod", "deployment", "statefulset", "jobset.x-k8s.io/jobset"]
_API: Final = "/apis/kueue.x-k8s.io/v1beta2"
# The resource that is served last.
_LARGEST: Final = "workloads"
# One check for each source of its rights: those of all users, its cluster role, and its role for certificates.
_NEEDED: Final[tuple[Manifest, ...]] = (
    {"nonResourceAttributes": {"path": "/api", "verb": "get"}},
    {"resourceAttributes": {"group": "kueue.x-k8s.io", "resource": _LARGEST, "verb": "list"}},
    {"resourceAttributes": {"namespace": _NAMESPACE, "resource": "secrets", "verb": "update"}},
)


async def start_kueue(cluster: Cluster, tell: Tell = ignore_progress) -> None:
    """Installs and starts Kueue, and returns when it handles workloads."""
    layout = cluster.layout
    await build_missing(cluster.shelf, [_WHO], tell)
    _make_identities(cluster)
    source = cluster.shelf.path("kueue").parent / "manifests.json"
    hosted = WebhookHost(cluster.pki.certificate("kueue-ca"), layout.port(PortOffset.KUEUE_WEBHOOK))
    items = [*without_processes(json.loads(source.read_text()), hosted), _secret(cluster)]
    # First: if webhooks exist and no process serves them, no pod can be created, and `resume_kueue` must detect that.
    layout.data("kueue.json").write_text(json.dumps(_configuration(layout)))
    async with cluster.api() as api:
        await publish_objects(api, items)
        await _until_served(cluster, api)
        await _until_allowed(cluster, api)
    await _start(cluster)


async def _until_served(cluster: Cluster, api: Api) -> None:
    """Waits until all kinds are served.

    Kueue reloads all kinds when one changes, and the API server changes each as it serves it.
    """
    _, server, *_ = cluster.control_plane()

    async def served() -> None:
        found = {each["name"] for each in (await api.get(_API))["resources"]}
        if _LARGEST not in found:
            raise Retry(
                "kueue.starting", "Kueue's kinds are not served yet.", hint="They will be in a moment."
            )

    await cluster.until(server, served)


async def _until_allowed(cluster: Cluster, api: Api) -> None:
    """Waits until Kueue has its rights, which take effect with a delay.

    Without them at its start, Kueue runs and does nothing.
    """
    _, server, *_ = cluster.control_plane()
    who = {"user": _USER, "groups": [*_GROUPS, "system:authenticated"]}

    async def allowed(service: Manifest) -> None:
        review: Manifest = {"spec": {**who, **service}}
        answer = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        if not answer["status"]["allowed"]:
            raise Retry("kueue.starting", "Kueue has no rights yet.", hint="It will have in a moment.")

    for service in _NEEDED:
        await cluster.until(server, partial(allowed, service))


async def _start(cluster: Cluster) -> None:
    part, layout = _part(cluster), cluster.layout
    # Written again, because the server's address may have changed.
    cluster.pki.kubeconfig(layout.kubeconfig_of("kueue"), "kueue", layout.server)
    await cluster.ensure(part)
    await cluster.answers(part, layout.port(PortOffset.KUEUE_HEALTH))
    await cluster.reachable(part, layout.port(PortOffset.KUEUE_WEBHOOK))


async def resume_kueue(cluster: Cluster, tell: Tell = ignore_progress) -> None:
    """Restarts Kueue if it was installed, also after an interrupted installation."""
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
    """The secret in which Kueue looks for certificates; ours are valid for a loopback address."""
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
