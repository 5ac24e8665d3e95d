"""`neorion drydock node`."""

from collections.abc import Callable

import click

from neorion.drydock.cli.options import name_option, require_extras
from neorion.keel.cli import App
from neorion.keel.cli.kit import Output

node = App("node", help="Add and remove nodes.")


@node.command("add")
@click.argument("node_name", required=False, metavar="[NODE]")
@name_option
@click.option("--simulated", metavar="N[:TYPE]", help='Nodes that only the API server knows: "10:h100x8".')
@click.option("--gpus", default=0, help="Fake GPUs of a real node.")
@click.option(
    "--size",
    default="",
    metavar="CPUS:MEMORY",
    help='What a real node offers, as in "1:4Gi"; else what the machine has.',
)
def add_command(
    out: Output, node_name: str | None, *, name: str, simulated: str | None, gpus: int, size: str
) -> None:
    """Add a real node, or simulated ones."""
    require_extras()
    from neorion.keel.base import Invalid  # noqa: PLC0415 -- the help does not need it

    if (simulated is None) is (node_name is None):
        raise Invalid(
            "drydock.which_node",
            "Either one real node is added or some simulated ones.",
            hint="Name the node, as in: node add node3; or say how many to simulate, as in: node add --simulated 10",
        )
    if simulated is not None:
        _add_simulated(out, name, simulated)
    elif node_name is not None:
        _add_real(out, name, node_name, gpus, size)


def _add_simulated(out: Output, name: str, text: str) -> None:
    from neorion.drydock.cli.session import run  # noqa: PLC0415 -- the help does not need it
    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- as above
    from neorion.drydock.simulated import SimulatedNodeGroup, add_simulated  # noqa: PLC0415 -- as above

    group = SimulatedNodeGroup.parse(text)

    async def add(tell: Callable[[str], None]) -> None:
        async with ClusterManager.of(out.env).held(name) as cluster:
            await add_simulated(cluster, group, tell)

    run(out, f"{group.count} simulated nodes", add)


def _add_real(out: Output, name: str, node_name: str, gpus: int, size: str) -> None:
    import os  # noqa: PLC0415 -- the help does not need it

    from neorion.drydock.cli.session import run  # noqa: PLC0415 -- as above
    from neorion.drydock.clusters import ClusterManager, ClusterOptions  # noqa: PLC0415 -- as above
    from neorion.drydock.node import NodeSpec  # noqa: PLC0415 -- as above
    from neorion.drydock.node import add as add_node  # noqa: PLC0415 -- as above
    from neorion.drydock.preflight import require_real_nodes  # noqa: PLC0415 -- as above

    cpus, _, memory = size.partition(":")
    spec = NodeSpec(gpus=gpus, cpus=cpus, memory=memory)
    require_real_nodes(out.env, os.geteuid())
    yard = ClusterManager.of(out.env)
    yard.find(name)

    async def add(tell: Callable[[str], None]) -> None:
        await yard.up(name, ClusterOptions(networked=True), tell)
        async with yard.held(name) as cluster:
            await add_node(cluster, node_name, spec, tell)

    run(out, f"node {node_name}", add)


@node.command("remove")
@click.argument("node_name", metavar="NODE")
@name_option
def remove_command(out: Output, node_name: str, name: str) -> None:
    """Remove a node, real or simulated."""
    require_extras()
    import anyio  # noqa: PLC0415 -- the help does not need it

    from neorion.drydock.clusters import ClusterManager  # noqa: PLC0415 -- as above
    from neorion.drydock.node import nodes, remove  # noqa: PLC0415 -- as above
    from neorion.drydock.simulated import remove_simulated  # noqa: PLC0415 -- as above

    async def go() -> None:
        async with ClusterManager.of(out.env).held(name) as cluster:
            if node_name in {each.name for each in nodes(cluster.layout)}:
                await remove(cluster, node_name)
            else:
                await remove_simulated(cluster, node_name)

    anyio.run(go)
    out.say(f"Node {node_name} is gone.")
