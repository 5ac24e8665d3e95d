"""kill -9 while a cluster with nodes is being made, then `down`: nothing is left."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.host import running
from neorion.drydock.machine import Cgroups, ask
from neorion.keel.clock import SystemClock
from tests.node.pods import MINUTES, NEEDS

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

_UP = """
import sys, anyio
from neorion.drydock.clusters import ClusterOptions, ClusterManager
anyio.run(ClusterManager.of().up, "killed", ClusterOptions(nodes=2), lambda words: print(words, flush=True))
print("done", flush=True)
"""


async def _killed_at(words: str, state: Path) -> None:
    env = {**os.environ, "XDG_STATE_HOME": str(state)}
    async with await anyio.open_process([sys.executable, "-c", _UP], env=env, stderr=None) as process:
        assert process.stdout is not None
        heard = ""
        async for text in TextReceiveStream(process.stdout):
            heard += text
            if words in heard:
                break
        assert words in heard
        process.kill()


async def _traces(bridge: str) -> list[str]:
    listed = [await ask(["ip", "link"]), await ask(["ip", "route"]), await ask(["nft", "list", "tables"])]
    found = [
        line for text in listed for line in text.splitlines() if bridge in line.replace(":", " ").split()
    ]
    return found + [str(path) for tree in Cgroups().hierarchies() for path in tree.glob(bridge)]


@pytest.mark.usefixtures("node_cluster")
@pytest.mark.parametrize("moment", ["starting registry", "starting node node2"])
async def test_down_leaves_nothing_of_a_cluster_whose_maker_was_killed(moment: str, tmp_path: Path):
    """Beside another cluster, which must not notice."""
    await _killed_at(moment, tmp_path)
    yard = ClusterManager(tmp_path / "neorion/drydock", BinaryCache.of(), SystemClock())
    bridge = yard.find("killed").layout.addresses.bridge
    assert await _traces(bridge)
    await yard.down("killed")
    assert await _traces(bridge) == []
    assert running(yard.folder / "killed") == []
    assert list(yard.folder.iterdir()) == []
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
