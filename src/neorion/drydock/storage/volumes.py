"""PersistentVolumes with the fields that are used here."""

from typing import Final

from neorion.keel.kube import Kind, KubeObject, KubeStruct
from neorion.keel.kube.core import PersistentVolumeClaim

CLASS: Final = "standard"
PROVISIONER: Final = "drydock.neorion/folder"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"


class VolumeSpec(KubeStruct, frozen=True):
    """The storage class of a volume."""

    storage_class_name: str = ""


class VolumeStatus(KubeStruct, frozen=True):
    """The phase of a volume."""

    phase: str = ""


class PersistentVolume(KubeObject, frozen=True):
    """A PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


VOLUME: Final = Kind(PersistentVolume, "PersistentVolume", "persistentvolumes", namespaced=False)


def wants_volume(claim: PersistentVolumeClaim) -> bool:
    spec = claim.spec
    return spec.storage_class_name == CLASS and not spec.volume_name and claim.meta.deleted is None


def is_left(volume: PersistentVolume) -> bool:
    """True if the volume's claim is gone. The class defines that its data is deleted too."""
    released = volume.status.phase == "Released" and volume.meta.deleted is None
    return released and volume.spec.storage_class_name == CLASS


def name_of(claim: PersistentVolumeClaim) -> str:
    """The name of the claim's volume, by uid: a retry gets the same volume, a later claim of that name another."""
    return f"pvc-{claim.meta.uid}"


def volume_for(claim: PersistentVolumeClaim, path: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        # The provisioner that removes it: without this annotation Kubernetes tries to, and fails.
        "metadata": {"name": name_of(claim), "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Delete",
            "capacity": {"storage": claim.spec.resources.requests.get("storage", "1Gi")},
            "accessModes": list(claim.spec.access_modes),
            "hostPath": {"path": path, "type": "Directory"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.meta.namespace,
                "name": claim.meta.name,
                "uid": claim.meta.uid,
            },
        },
    }
