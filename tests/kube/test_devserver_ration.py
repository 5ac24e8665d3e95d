"""A flavor of which each user gets only so many, by the operator alone: whoever skips `devctl` gains nothing."""

import pytest

from neorion.devservers.model import Phase
from neorion.keel.kube.client import Client
from tests.kube.dev_room import Room, operating

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(480)]


async def test_the_next_in_line_gets_what_another_gives_up(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        scarce, common = await room.flavor("scarce", limits={"maxPerUser": 1}), await room.flavor("common")
        await room.create("first", scarce)
        await room.until_phase("first", Phase.RUNNING)
        await room.create("second", scarce)
        refused = await room.until_phase("second", Phase.FAILED)
        assert refused.status.message is not None
        assert "allows 1 servers for each user" in refused.status.message
        await room.until(lambda: room.told("second", "TooMany"))
        assert not room.pods_of("second")
        assert room.home("second") is None
        # Another flavor makes room as well as a deletion does.
        await room.change("first", flavor=common)
        await room.until_phase("second", Phase.RUNNING)
        await room.create("third", scarce)
        await room.until_phase("third", Phase.FAILED)
        await room.delete("second")
        await room.until_phase("third", Phase.RUNNING)
