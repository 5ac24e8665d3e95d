"""The work of `neorion drydock node`."""

import os
from collections.abc import Callable

import anyio

from neorion.drydock.cli.session import run
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.node import NodeSpec, nodes, remove
from neorion.drydock.node import add as add_node
from neorion.drydock.preflight import require_real_nodes
from neorion.drydock.simulated import SimulatedNodeGroup, add_simulated, remove_simulated
from neorion.keel.base import Invalid
from neorion.keel.cli.kit import Output


def add_command(
    out: Output, node_name: str | None, *, name: str, simulated: str | None, gpus: int, size: str
) -> None:
    if (simulated is None) is (node_name is None):
        raise Invalid(
            "drydock.which_node",
            "Either one real node is added or some simulated ones.",
            hint="Name the node, as in: node add node3; or give a number to simulate, as in: node add --simulated 10.",
        )
    if simulated is not None:
        _add_simulated(out, name, simulated)
    elif node_name is not None:
        _add_real(out, name, node_name, gpus, size)


def remove_command(out: Output, node_name: str, name: str) -> None:
    async def go() -> None:
        async with ClusterManager.of(out.env).exclusive(name) as cluster:
            if node_name in {each.name for each in nodes(cluster.layout)}:
                await remove(cluster, node_name)
            else:
                await remove_simulated(cluster, node_name)

    anyio.run(go)
    out.say(f"Node {node_name} is gone.")


def _add_simulated(out: Output, name: str, text: str) -> None:
    group = SimulatedNodeGroup.parse(text)

    async def add(tell: Callable[[str], None]) -> None:
        async with ClusterManager.of(out.env).exclusive(name) as cluster:
            await add_simulated(cluster, group, tell)

    run(out, f"{group.count} simulated nodes", add)


def _add_real(out: Output, name: str, node_name: str, gpus: int, size: str) -> None:
    cpus, _, memory = size.partition(":")
    spec = NodeSpec(gpus=gpus, cpus=cpus, memory=memory)
    require_real_nodes(out.env, os.geteuid())
    manager = ClusterManager.of(out.env)
    manager.find(name)

    async def add(tell: Callable[[str], None]) -> None:
        await manager.up(name, ClusterOptions(networked=True), tell)
        async with manager.exclusive(name) as cluster:
            await add_node(cluster, node_name, spec, tell)

    run(out, f"node {node_name}", add)
