"""Metrics of emulated devices by DCGM's names: an exporter on each real node, which serves the ids that its kubelet has.

Devices without a function are idle: every value is zero.
"""

from typing import Final

from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.images import ImageStore, Registry, provide
from neorion.drydock.simulated import LABEL

NAME: Final = "device-metrics"
_NAMESPACE: Final = "kube-system"
# The name that the checks of conformance use by default: they find it in the cluster's registry.
_IMAGE: Final = "docker.io/library/busybox:1.36"
_PORT: Final = 9400
_PATH: Final = "/cgi-bin/metrics"
# By this label clients find the exporter of DCGM.
_LABELS: Final = {"app": "nvidia-dcgm-exporter"}
# The kubelet writes the ids of its healthy devices here.
_KUBELET: Final = "/var/lib/kubelet/device-plugins"
_SCRIPT: Final = f"""mkdir -p /tmp/www/cgi-bin
cat > /tmp/www{_PATH} <<'END'
#!/bin/sh
printf 'Content-Type: text/plain; version=0.0.4\\r\\n\\r\\n'
ids=$(grep -o 'GPU-[0-9a-f-]*' {_KUBELET}/kubelet_internal_checkpoint | sort -u)
for metric in DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_FB_USED; do
    echo "# TYPE $metric gauge"
    for id in $ids; do echo "$metric{{UUID=\\"$id\\",Hostname=\\"$NODE\\"}} 0"; done
done
END
chmod +x /tmp/www{_PATH}
exec httpd -f -p {_PORT} -h /tmp/www"""


async def start(cluster: Cluster) -> None:
    """Publishes the exporter. Its pods start with their nodes."""
    store = ImageStore.of(cluster.shelf)
    await provide(store, [_IMAGE])
    await store.push(_IMAGE, Registry.of(cluster.layout).address)
    async with cluster.api() as api:
        await api.apply(f"/apis/apps/v1/namespaces/{_NAMESPACE}/daemonsets/{NAME}", _daemon_set())


def _daemon_set() -> Object:
    container: Object = {
        "name": "exporter",
        "image": _IMAGE,
        "command": ["sh", "-c", _SCRIPT],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "ports": [{"name": "metrics", "containerPort": _PORT}],
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
        "volumeMounts": [{"name": "kubelet", "mountPath": _KUBELET, "readOnly": True}],
    }
    spec: Object = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        # Simulated nodes run no programs.
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _real_nodes()}},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "volumes": [{"name": "kubelet", "hostPath": {"path": _KUBELET, "type": "Directory"}}],
        "containers": [container],
    }
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(_PORT),
        "prometheus.io/path": _PATH,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": _NAMESPACE, "labels": _LABELS},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS, "annotations": annotations}, "spec": spec},
        },
    }


def _real_nodes() -> Object:
    expressions = [{"key": LABEL, "operator": "DoesNotExist"}]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
