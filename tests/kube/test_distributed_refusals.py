"""Distributed servers that cannot be are refused by the API server, in words one can act on."""

from typing import Any

import msgspec
import pytest

from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.keel.kube import InvalidObject, MergePatch
from neorion.keel.kube.client import Client
from tests.kube import distributed_refusals as refused
from tests.kube.dev_room import Room

pytestmark = pytest.mark.anyio


def manifest(room: Room, name: str, distributed: dict[str, Any]) -> dict[str, Any]:
    spec = {"flavor": "any", "mode": "distributed", "running": False}
    whole = {"worldSize": 4, **distributed}
    return {"metadata": {"name": name, "namespace": room.namespace}, "spec": spec | {"distributed": whole}}


async def test_the_tables_are_long_enough_and_each_row_says_what_is_wrong(fleet_api: Client, room: Room):
    tables = (refused.FIELDS, refused.SPECS, refused.CHANGES, refused.TOPOLOGIES, refused.WARM)
    assert sum(map(len, tables)) + 1 >= 50
    for row, (change, words) in refused.FIELDS.items():
        with pytest.raises(InvalidObject) as error:
            await fleet_api.create(DEVSERVERS.raw, manifest(room, "wrong", change))
        assert words in error.value.sentence, row
    for row, (spec, words) in refused.SPECS.items():
        body = manifest(room, "wrong", {})
        body["spec"] = {name: part for name, part in (body["spec"] | spec).items() if part is not None}
        with pytest.raises(InvalidObject) as error:
            await fleet_api.create(DEVSERVERS.raw, body)
        assert words in error.value.sentence or words in str(error.value), row
    with pytest.raises(InvalidObject) as error:
        await fleet_api.create(DEVSERVERS.raw, manifest(room, refused.NAME, {}))
    assert refused.UNNAMEABLE in error.value.sentence
    assert (await fleet_api.list(DEVSERVERS, room.namespace)).items == []


async def test_what_is_good_is_taken_as_it_was_written(fleet_api: Client, room: Room):
    """Every field of the document, and the limits of each."""
    most = {
        "worldSize": 4096,
        "nprocsPerNode": 64,
        "minNodes": 64,
        "backend": "mpi",
        "maxRestarts": 1000,
        "port": 29510,
        "homes": "Shared",
        "ncclSettings": {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0", "FI_PROVIDER": "efa"},
    }
    made = await fleet_api.create(DEVSERVERS, manifest(room, refused.NAME[1:], most))
    assert msgspec.to_builtins(made.spec.distributed) == most


async def test_a_change_that_cannot_be_is_refused(fleet_api: Client, room: Room):
    await fleet_api.create(DEVSERVERS.raw, manifest(room, "gang", {}))
    for row, (change, words) in refused.CHANGES.items():
        spec: dict[str, Any] = (
            {"distributed": change} if change else {"mode": "standalone", "distributed": None}
        )
        with pytest.raises(InvalidObject) as error:
            await fleet_api.patch(DEVSERVERS, "gang", MergePatch({"spec": spec}), room.namespace)
        assert words in error.value.sentence, row


async def test_a_flavor_that_cannot_be_is_refused(fleet_api: Client, room: Room):
    for row, (topology, words) in refused.TOPOLOGIES.items():
        with pytest.raises(InvalidObject) as error:
            await room.flavor("wrong", topology=topology)
        assert words in error.value.sentence or words in str(error.value), row
    for row, (warm, words) in refused.WARM.items():
        with pytest.raises(InvalidObject) as error:
            await room.flavor("wrong", warm=warm)
        assert words in error.value.sentence or words in str(error.value), row
    assert fleet_api is room.api
