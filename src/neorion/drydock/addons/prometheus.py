"""Prometheus: discovers pods by their annotations and collects their metrics.

Not a Service: the API server's proxy leads to pods alone. It is asked at the address of the bridge.
"""

import json
from typing import Final

from neorion.drydock.addons.rbac import cluster_binding, user
from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.layout import Layout, PortOffset
from neorion.drydock.pki import Subject
from neorion.keel.kube import client as kube
from neorion.keel.kube.client.transport import HttpRequest

NAME: Final = "prometheus"
PROGRAMS: Final = ("prometheus",)
_SCRAPE: Final = "2s"
# The annotations that charts everywhere use.
_ANNOTATION: Final = "__meta_kubernetes_pod_annotation_prometheus_io"


def url(layout: Layout) -> str:
    return f"http://{layout.addresses.host}:{layout.port(PortOffset.PROMETHEUS)}"


async def start(cluster: Cluster) -> None:
    """Returns when it answers."""
    layout = cluster.layout
    cluster.pki.issue(NAME, Subject(f"drydock:{NAME}"))
    cluster.pki.kubeconfig(layout.kubeconfig_of(NAME), NAME, layout.server)
    config = layout.data("prometheus.json")
    # JSON is YAML.
    config.write_text(json.dumps(_configuration(cluster)))
    async with cluster.api() as api:
        # Every cluster has this role; it reads no secrets.
        path, body = cluster_binding(f"drydock:{NAME}", "view", user(f"drydock:{NAME}"))
        await api.apply(path, body)
    flags = {
        "config.file": config,
        "storage.tsdb.path": layout.data("prometheus"),
        "storage.tsdb.retention.time": "1d",
        "web.listen-address": url(layout).removeprefix("http://"),
        "log.level": "warn",
    }
    part = Component(
        NAME, (str(cluster.shelf.path(NAME)), *(f"--{flag}={value}" for flag, value in flags.items()))
    )
    await cluster.ensure(part)
    async with kube.connect(kube.ClusterConfig(url(layout)), "drydock", cluster.clock) as client:
        await cluster.until(part, lambda: client.transport.once(HttpRequest("GET", "/-/ready")))


def _configuration(cluster: Cluster) -> Object:
    kept = [
        {"source_labels": [f"{_ANNOTATION}_scrape"], "regex": "true", "action": "keep"},
        {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"},
        {
            "source_labels": ["__meta_kubernetes_pod_ip", f"{_ANNOTATION}_port"],
            "separator": ":",
            "target_label": "__address__",
        },
        {"source_labels": [f"{_ANNOTATION}_path"], "regex": "(.+)", "target_label": "__metrics_path__"},
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
    ]
    discovery = {"role": "pod", "kubeconfig_file": str(cluster.layout.kubeconfig_of(NAME))}
    job = {"job_name": "pods", "kubernetes_sd_configs": [discovery], "relabel_configs": kept}
    return {"global": {"scrape_interval": _SCRAPE, "scrape_timeout": "1s"}, "scrape_configs": [job]}
