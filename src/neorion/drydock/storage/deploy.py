"""Deploys the storage of a cluster: the class, the rights, and the process."""

import sys
from typing import Final

from neorion.drydock.api import Api, Object
from neorion.drydock.host import Component
from neorion.drydock.layout import Layout
from neorion.drydock.pki import Pki, Subject
from neorion.drydock.storage.volumes import CLASS, PROVISIONER

_WHO: Final = "storage"
_USER: Final = "drydock:storage"


def storage_part(layout: Layout, pki: Pki) -> Component:
    pki.issue(_WHO, Subject(_USER))
    kubeconfig = layout.kubeconfig_of(_WHO)
    pki.kubeconfig(kubeconfig, _WHO, layout.server)
    folder = layout.folder / "volumes"
    return Component(
        _WHO, (sys.executable, "-P", "-m", "neorion.drydock.storage", str(kubeconfig), str(folder))
    )


async def publish_storage(api: Api) -> None:
    group = "rbac.authorization.k8s.io"
    binding: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _USER},
        # Every cluster has this role already.
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:persistent-volume-provisioner"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": _USER}],
    }
    storage_class: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
    await api.apply(f"/apis/{group}/v1/clusterrolebindings/{_USER}", binding)
    await api.apply(f"/apis/storage.k8s.io/v1/storageclasses/{CLASS}", storage_class)
