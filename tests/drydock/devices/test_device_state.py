"""The devices in a node's folder."""

import os
from pathlib import Path

import pytest

from neorion.drydock.devices import DeviceTable, Health
from neorion.keel.base import NotFound

pytestmark = pytest.mark.anyio


async def test_marks_stay_when_a_node_starts_again(tmp_path: Path):
    rack = DeviceTable(tmp_path)
    rack.fill(4)
    before = rack.slots()
    await rack.mark(1, Health.UNHEALTHY)
    rack.fill(4)
    assert [slot.id for slot in rack.slots()] == [slot.id for slot in before]
    assert [slot.health for slot in rack.slots()].count(Health.UNHEALTHY) == 1


async def test_devices_have_different_ids_on_every_node(tmp_path: Path):
    ids = set[str]()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        rack = DeviceTable(tmp_path / name)
        rack.fill(8)
        ids |= {slot.id for slot in rack.slots()}
    assert len(ids) == 16


async def test_a_mark_wakes_whoever_listens_and_needs_nobody_to(tmp_path: Path):
    rack = DeviceTable(tmp_path)
    rack.fill(1)
    await rack.mark(0, Health.UNHEALTHY)
    pipe = os.open(rack.wake, os.O_RDWR | os.O_NONBLOCK)
    try:
        await rack.mark(0, Health.HEALTHY)
        assert os.read(pipe, 10) == b"\n"
    finally:
        os.close(pipe)


async def test_a_place_without_a_device_is_refused(tmp_path: Path):
    rack = DeviceTable(tmp_path)
    rack.fill(2)
    for place in (-1, 2):
        with pytest.raises(NotFound, match=f"no device {place}"):
            await rack.mark(place, Health.UNHEALTHY)
