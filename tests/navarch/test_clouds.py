"""`navarch serve` with clouds that are not in this process."""

from pathlib import Path

import pytest

from neorion.keel.base import Invalid
from neorion.keel.config import load
from neorion.navarch.adapters.config_file import ConfigFile
from neorion.navarch.app.serving import serving
from neorion.navarch.model import NodeState
from tests.capacity.clouds.ec2 import IMAGE, ec2

pytestmark = pytest.mark.anyio

FILE = """
server: {{ address: "127.0.0.1:0", state_dir: {folder} }}
providers: {{ aws: {{ region: "{region}", api_url: "{url}" }} }}
pools:
  - {{ name: training, provider: aws, instance_type: p5.48xlarge, image: {image}, max_nodes: 2, min_nodes: 2 }}
"""


def _file(folder: Path, url: str, region: str) -> ConfigFile:
    path = folder / "config.yaml"
    path.write_text(FILE.format(folder=folder / "state", url=url, image=IMAGE, region=region))
    return load(path, ConfigFile, {})


async def test_a_pool_is_filled_from_ec2(tmp_path: Path):
    async with ec2() as rig:
        file = _file(tmp_path, rig.gate.url, "us-west-2")
        async with serving(file, tmp_path, {"HOME": str(tmp_path)}) as running:
            fleet = running.plane.fleet
            await fleet.tick()
            await fleet.errands.idle()
            nodes = list(fleet.deck.book.nodes.values())
            there = await fleet.deck.world.providers["aws"].list(fleet.deck.installation.id)
        assert [node.state for node in nodes] == [NodeState.BOOTING] * 2
        assert {node.machine for node in nodes} == {machine.id for machine in there}


async def test_a_pool_without_a_region_is_refused_at_the_start(tmp_path: Path):
    file = _file(tmp_path, "http://127.0.0.1:9", "")
    with pytest.raises(Invalid) as refusal:
        async with serving(file, tmp_path, {"HOME": str(tmp_path)}):
            pass
    assert refusal.value.code == "navarch.no_region"
