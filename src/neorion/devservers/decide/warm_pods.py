"""Warm Pods: machines of a flavor that are bought and have the image before a server asks for one.

A warm Pod only holds the place. Its priority is below that of every other Pod, so the scheduler evicts it at once when a
server needs the machine, and a new one is made elsewhere.
"""

from hashlib import sha256
from typing import Final

from neorion.devservers.decide.manifests import Manifest, OperatorSettings, resources_of, toleration
from neorion.devservers.model import GROUP, VERSION
from neorion.devservers.model.flavor import WarmPods
from neorion.devservers.model.kube_types import DevServerFlavor
from neorion.devservers.model.tenancy import WARM_NAMESPACE

# The flavor that a Deployment of warm Pods belongs to, as a hash: names of flavors may be longer than labels.
WARM_LABEL: Final = f"{GROUP}/warm"
PRIORITY_CLASS: Final = "devservers-warm"
_NOBODY: Final = 65534


def warm_label(flavor: str) -> str:
    return _hash(flavor)


def warm_deployments(flavor: DevServerFlavor, settings: OperatorSettings) -> tuple[Manifest, ...]:
    """A Deployment for each image whose machines are kept ready."""
    return tuple(_deployment(flavor, one, settings) for one in flavor.spec.warm if one.size)


def _deployment(flavor: DevServerFlavor, warm: WarmPods, settings: OperatorSettings) -> Manifest:
    name, spec = flavor.meta.name, flavor.spec
    image = warm.image or spec.image or settings.default_image
    labels = {WARM_LABEL: warm_label(name), f"{WARM_LABEL}-image": _hash(image)}
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "DevServerFlavor",
        "name": name,
        "uid": flavor.meta.uid,
        "controller": True,
    }
    pod: Manifest = {
        "priorityClassName": PRIORITY_CLASS,
        # The machine is free the moment that a server needs it.
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "warm",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["/bin/sh", "-c", "while :; do sleep 86400; done"],
                "resources": resources_of(spec),
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    }
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = [toleration(one) for one in spec.tolerations]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": f"warm-{warm_label(name)}-{_hash(image)}",
            "namespace": WARM_NAMESPACE,
            "labels": labels,
            "annotations": {f"{GROUP}/flavor": name},
            "ownerReferences": [owner],
        },
        "spec": {
            "replicas": warm.size,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:10]
