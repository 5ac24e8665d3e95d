"""Kubeflow Trainer: TrainJobs as JobSets, run by its operator. JobSet comes with it."""

import json
from pathlib import Path
from typing import Final

from neorion.drydock.addons import jobset
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.installed_objects import Manifest, WebhookHost, publish_objects, without_processes
from neorion.drydock.layout import LOOPBACK, PortOffset
from neorion.drydock.pki import Subject

NAME: Final = "trainer"
PROGRAMS: Final = ("trainer-controller-manager", *jobset.PROGRAMS)
_NAMESPACE: Final = "kubeflow-system"
_ACCOUNT: Final = "kubeflow-trainer-controller-manager"
_USER: Final = f"system:serviceaccount:{_NAMESPACE}:{_ACCOUNT}"
_GROUPS: Final = ("system:serviceaccounts", f"system:serviceaccounts:{_NAMESPACE}")
_KIND: Final = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"
# The name that its makers give the configuration of their webhooks.
_WEBHOOKS: Final = "validator.trainer.kubeflow.org"


async def start(cluster: Cluster) -> None:
    """Installs its objects, starts it with its own rights, and returns when its webhooks answer."""
    await jobset.start(cluster)
    layout, program = cluster.layout, cluster.shelf.path(PROGRAMS[0])
    pki = cluster.pki
    pki.issue(NAME, Subject(_USER, _GROUPS))
    pki.kubeconfig(layout.kubeconfig_of(NAME), NAME, layout.server)
    _write_certificates(cluster)
    config = layout.data("trainer.json")
    config.write_text(json.dumps(_configuration(cluster)))
    host = WebhookHost(pki.certificate("ca"), layout.port(PortOffset.TRAINER_WEBHOOK))
    objects = json.loads((program.parent / "manifests.json").read_text())
    _, server, *_ = cluster.control_plane()
    async with cluster.api() as api:
        await publish_objects(api, [_named(item) for item in without_processes(objects, host)])
        await cluster.until(server, lambda: api.get(_KIND))
    # It looks for certificates below the folder for temporary files.
    env = {"KUBECONFIG": str(layout.kubeconfig_of(NAME)), "TMPDIR": str(_folder(cluster))}
    part = Component(NAME, (str(program), f"--config={config}", "--zap-log-level=error"), env)
    await cluster.ensure(part)
    await cluster.answers(part, layout.port(PortOffset.TRAINER_HEALTH))
    await cluster.reachable(part, layout.port(PortOffset.TRAINER_WEBHOOK))


def _folder(cluster: Cluster) -> Path:
    return cluster.layout.data("trainer")


def _write_certificates(cluster: Cluster) -> None:
    pki = cluster.pki
    pki.issue("trainer-webhook", Subject("trainer-webhook", hosts=[LOOPBACK]))
    folder = _folder(cluster) / "k8s-webhook-server" / "serving-certs"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "tls.crt").write_bytes(pki.certificate("trainer-webhook").read_bytes())
    (folder / "tls.key").write_bytes(pki.key("trainer-webhook").read_bytes())


def _named(item: Manifest) -> Manifest:
    """The names and the namespace that its makers' installation would give."""
    if item["kind"] == "ValidatingWebhookConfiguration":
        item["metadata"]["name"] = _WEBHOOKS
    for subject in item.get("subjects", ()):
        subject["namespace"] = _NAMESPACE
    return item


def _configuration(cluster: Cluster) -> Manifest:
    layout = cluster.layout
    return {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "certManagement": {"enable": False},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{layout.port(PortOffset.TRAINER_HEALTH)}"},
        "metrics": {"bindAddress": "0", "secureServing": False},
        "webhook": {"host": LOOPBACK, "port": layout.port(PortOffset.TRAINER_WEBHOOK)},
    }
