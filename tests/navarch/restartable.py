"""A control plane as a program that can be killed: `python -m tests.navarch.restartable FOLDER PORT NODES`.

Its first life makes the nodes, which serve. Prints its port and the tokens of their agents, and ends with its input.
"""

import asyncio
import json
import sys
from pathlib import Path

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeProvider
from neorion.capacity.provider import MachineId
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import serve
from neorion.keel.store import open_store
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.null import NoDemand, NoScheduler
from neorion.navarch.adapters.policy_engine import InlinePolicyEngine
from neorion.navarch.app.control_plane import (
    MIGRATIONS,
    ControlPlane,
    ControlPlaneSettings,
    Dependencies,
    build,
)
from neorion.navarch.controllers.context import Backends
from neorion.navarch.model import Node, NodeId, NodeState, Placement, PoolState
from neorion.navarch.testing import spec

PLACE = Placement("fake", "gpu_8x_h100_sxm5", "us-west-2")


def populate(plane: ControlPlane, nodes: int) -> None:
    context = plane.fleet.context
    context.state.put_pool(PoolState("training", wanted=nodes))
    now = context.clock.now()
    for number in range(nodes):
        context.state.put_node(
            Node(
                context.ids.new(NodeId), "training", PLACE, now, now, NodeState.ACTIVE,
                machine=MachineId(f"fake-{number:06d}"), gpus=8, served=now,
            )
        )  # fmt: skip


async def main(folder: Path, port: int, nodes: int) -> None:
    clock, rng = SystemClock(), system_rng()
    cloud = FakeCloud(clock, rng, FakeCloudOptions())
    world = Backends(
        {"fake": FakeProvider("fake", cloud)},
        NoScheduler(),
        NoDemand(),
        InlinePolicyEngine({"default": default_policy()}),
    )
    async with (
        open_store(folder / "navarch.db", migrations=MIGRATIONS, clock=clock) as store,
        build(
            ControlPlaneSettings({"training": spec(nodes)}, "operator-token"),
            world,
            Dependencies(store, clock, SystemIds(), rng),
        ) as plane,
    ):
        if not plane.fleet.context.state.nodes:
            populate(plane, nodes)
            await plane.fleet.context.journal.wait_durable()
        async with serve(plane.app, port=port) as server:
            tokens = [plane.keys.token_of(node) for node in plane.fleet.context.state.nodes]
            sys.stdout.write(json.dumps({"port": server.port, "tokens": tokens}) + "\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
