"""JobSet: several Jobs as one, run by its operator."""

import json
from typing import Final

from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.installed_objects import Manifest, WebhookHost, publish_objects, without_processes
from neorion.drydock.layout import LOOPBACK, PortOffset
from neorion.drydock.pki import Subject

NAME: Final = "jobset"
PROGRAMS: Final = ("jobset",)
_NAMESPACE: Final = "jobset-system"
_USER: Final = f"system:serviceaccount:{_NAMESPACE}:jobset-controller-manager"
_GROUPS: Final = ("system:serviceaccounts", f"system:serviceaccounts:{_NAMESPACE}")
_KIND: Final = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
_OF_JOBSETS: Final = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}


async def start(cluster: Cluster) -> None:
    """Installs its objects, starts it with its own rights, and returns when its webhooks answer."""
    layout, program = cluster.layout, cluster.shelf.path(NAME)
    pki = cluster.pki
    pki.issue(NAME, Subject(_USER, _GROUPS))
    pki.kubeconfig(layout.kubeconfig_of(NAME), NAME, layout.server)
    pki.issue("jobset-webhook", Subject("jobset-webhook", hosts=[LOOPBACK]))
    certificates = layout.data("jobset-certificates")
    certificates.mkdir(mode=0o700, exist_ok=True)
    (certificates / "tls.crt").write_bytes(pki.certificate("jobset-webhook").read_bytes())
    (certificates / "tls.key").write_bytes(pki.key("jobset-webhook").read_bytes())
    config = layout.data("jobset.json")
    config.write_text(json.dumps(_configuration(cluster)))
    host = WebhookHost(pki.certificate("ca"), layout.port(PortOffset.JOBSET_WEBHOOK))
    objects = json.loads((program.parent / "manifests.json").read_text())
    items = [_narrowed(item) for item in without_processes(objects, host)]
    _, server, *_ = cluster.control_plane()
    async with cluster.api() as api:
        await publish_objects(api, items)
        await cluster.until(server, lambda: api.get(_KIND))
    argv = (str(program), f"--config={config}", "--metrics-bind-address=0", "--zap-log-level=error")
    part = Component(NAME, argv, {"KUBECONFIG": str(layout.kubeconfig_of(NAME))})
    await cluster.ensure(part)
    await cluster.answers(part, layout.port(PortOffset.JOBSET_HEALTH))
    await cluster.reachable(part, layout.port(PortOffset.JOBSET_WEBHOOK))


def _narrowed(item: Manifest) -> Manifest:
    """Narrows the webhook for pods. It is asked about pods of JobSets alone: others can be made while it is away."""
    for webhook in item.get("webhooks", ()):
        if any("pods" in rule["resources"] for rule in webhook["rules"]):
            webhook["objectSelector"] = _OF_JOBSETS
    return item


def _configuration(cluster: Cluster) -> Manifest:
    layout = cluster.layout
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{layout.port(PortOffset.JOBSET_HEALTH)}"},
        "webhook": {
            "host": LOOPBACK,
            "port": layout.port(PortOffset.JOBSET_WEBHOOK),
            "certDir": str(layout.data("jobset-certificates")),
        },
    }
