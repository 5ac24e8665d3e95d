"""Which claims get a volume, and which volumes go."""

import pytest

from neorion.drydock.storage.volumes import (
    CLASS,
    PersistentVolume,
    VolumeSpec,
    VolumeStatus,
    is_left,
    name_of,
    volume_for,
    wants_volume,
)
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.core import PersistentVolumeClaim
from neorion.keel.kube.core.core_v1 import PersistentVolumeClaimSpec, VolumeResources

CLAIM = PersistentVolumeClaim(
    meta=ObjectMeta(name="home", namespace="dev", uid="u-1"),
    spec=PersistentVolumeClaimSpec(
        access_modes=("ReadWriteOnce",),
        resources=VolumeResources({"storage": "5Gi"}),
        storage_class_name=CLASS,
    ),
)


@pytest.mark.parametrize(
    ("spec", "wants"),
    [
        (PersistentVolumeClaimSpec(storage_class_name=CLASS), True),
        (PersistentVolumeClaimSpec(storage_class_name=CLASS, volume_name="v"), False),
        (PersistentVolumeClaimSpec(storage_class_name="other"), False),
        (PersistentVolumeClaimSpec(), False),
    ],
)
def test_only_open_claims_of_our_class_get_a_volume(spec: PersistentVolumeClaimSpec, wants: bool):  # noqa: FBT001 -- a column of the table
    assert wants_volume(PersistentVolumeClaim(spec=spec)) is wants


def test_a_claim_that_is_being_deleted_gets_none():
    assert not wants_volume(
        PersistentVolumeClaim(meta=ObjectMeta(deleted="2026-01-01T00:00:00Z"), spec=CLAIM.spec)
    )


@pytest.mark.parametrize(
    ("phase", "of_class", "left"),
    [
        ("Released", CLASS, True),
        ("Bound", CLASS, False),
        ("Released", "other", False),
        ("Available", CLASS, False),
    ],
)
def test_only_volumes_of_our_class_whose_claim_is_gone_go(phase: str, of_class: str, left: bool):  # noqa: FBT001 -- a column of the table
    assert is_left(PersistentVolume(spec=VolumeSpec(of_class), status=VolumeStatus(phase))) is left


def test_the_volume_is_bound_to_its_claim_and_to_no_other_of_its_name():
    volume = volume_for(CLAIM, "/volumes/x")
    spec = volume["spec"]
    assert isinstance(spec, dict)
    assert spec["claimRef"]["uid"] == "u-1"
    assert spec["capacity"] == {"storage": "5Gi"}
    assert name_of(CLAIM) == "pvc-u-1"
