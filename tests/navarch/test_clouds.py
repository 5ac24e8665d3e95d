"""`navarch serve` with clouds that are not in this process."""

from pathlib import Path

import pytest

from neorion.keel.base import Invalid
from neorion.keel.config import load
from neorion.navarch.adapters.config_file import ConfigFile
from neorion.navarch.app.server import serving
from neorion.navarch.model import Node, NodeState
from tests.capacity.clouds.compute_engine import PROJECT, compute_engine
from tests.capacity.clouds.ec2 import IMAGE, ec2
from tests.capacity.clouds.lambda_api import KEY, lambda_api

pytestmark = pytest.mark.anyio

FILE = """
server: {{ address: "127.0.0.1:0", state_dir: {folder} }}
providers: {{ {provider} }}
pools:
  - {{ name: training, max_nodes: 2, {pool} }}
"""


def _file(folder: Path, provider: str, pool: str) -> ConfigFile:
    path = folder / "config.yaml"
    path.write_text(FILE.format(folder=folder / "state", provider=provider, pool=pool))
    return load(path, ConfigFile, {})


def _env(folder: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(folder), **more}


async def _bought(file: ConfigFile, folder: Path, env: dict[str, str]) -> list[Node]:
    """What a control plane with this file buys at first, which is what the cloud then lists as its own."""
    async with serving(file, folder, env) as running:
        fleet = running.plane.fleet
        await fleet.tick()
        await fleet.effects.idle()
        nodes = list(fleet.context.state.nodes.values())
        (cloud,) = fleet.context.backends.providers.values()
        there = await cloud.list(fleet.context.installation.id)
    assert {node.machine for node in nodes} == {machine.id for machine in there}
    assert {node.purchase for node in nodes} == {machine.intent for machine in there}
    return nodes


async def test_a_pool_is_filled_from_ec2(tmp_path: Path):
    async with ec2() as rig:
        file = _file(
            tmp_path,
            f'aws: {{ region: us-west-2, api_url: "{rig.gate.url}" }}',
            f"min_nodes: 2, provider: aws, instance_type: p5.48xlarge, image: {IMAGE}",
        )
        nodes = await _bought(file, tmp_path, _env(tmp_path))
    assert [node.state for node in nodes] == [NodeState.BOOTING] * 2


async def test_a_pool_is_filled_from_lambda(tmp_path: Path):
    async with lambda_api() as rig:
        file = _file(
            tmp_path,
            f'lambda: {{ api_key_env: MY_KEY, api_url: "{rig.gate.url}/api/v1" }}',
            "min_nodes: 1, provider: lambda, instance_type: gpu_8x_h100_sxm5, region: us-west-2",
        )
        nodes = await _bought(file, tmp_path, _env(tmp_path, MY_KEY=KEY))
    assert [node.state for node in nodes] == [NodeState.BOOTING]


async def test_a_pool_is_filled_from_google_though_it_names_no_zone(tmp_path: Path):
    async with compute_engine() as rig:
        file = _file(
            tmp_path,
            f'gcp: {{ project: {PROJECT}, api_url: "{rig.gate.url}" }}',
            "min_nodes: 2, provider: gcp, instance_type: a2-highgpu-1g, region: us-central1",
        )
        rig.cloud.looks = 0
        nodes = await _bought(file, tmp_path, _env(tmp_path))
    assert [(node.state, node.place.zone) for node in nodes] == [(NodeState.BOOTING, "us-central1-a")] * 2


@pytest.mark.parametrize(
    ("provider", "pool", "code"),
    [
        ("aws: {}", "provider: aws, instance_type: p5.48xlarge", "navarch.no_region"),
        ("lambda: {}", "provider: lambda, instance_type: gpu_1x_a10, region: us-west-2", "navarch.no_key"),
    ],
)
async def test_a_cloud_that_could_not_be_bought_from_is_refused_at_the_start(
    tmp_path: Path, provider: str, pool: str, code: str
):
    with pytest.raises(Invalid) as refusal:
        async with serving(_file(tmp_path, provider, pool), tmp_path, _env(tmp_path)):
            pass
    assert refusal.value.code == code
