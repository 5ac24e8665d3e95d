"""PyTorch on four ranks over two real nodes: it trains without an option, goes on after a lost node, and is elastic."""

import json
import os
import re
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.images import BuildRequest, ImageName, ImageStore, Registry, build
from neorion.drydock.node import bring_up, find, init_pid
from neorion.keel.clock import SystemClock
from tests.node.devservers import PATIENCE, Devctl, operated
from tests.node.pods import NEEDS

pytestmark = [NEEDS, pytest.mark.needs("mmdebstrap"), pytest.mark.slow, pytest.mark.timeout(1500)]

# Debian's own build is for CPUs, with gloo, and a fifth of the size of the one that PyPI serves.
TORCH = """FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3-torch
RUN printf '#!/bin/sh\\nexec python3 -m torch.distributed.run "$@"\\n' >/usr/local/bin/torchrun && chmod +x /usr/local/bin/torchrun
"""
CHECK = "/opt/devserver/bin/check-distributed"
# The whole set-up takes less than this, and the control plane's part of it less than that.
SETUP_MAX_S, CONTROL_MAX_S = 300.0, 10.0
# Adds up one number of each process again and again, until there is a file `stop` in the home.
LOOP = """import os, time, torch, torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=20))
turn = 0
while not os.path.exists("/home/dev/stop"):
    number = torch.ones(1)
    dist.all_reduce(number)
    if turn % 5 == 0:
        print("world", dist.get_world_size(), "sum", int(number.item()), flush=True)
    turn += 1
    time.sleep(0.2)
"""


async def _give_torch(cluster: Cluster, folder: Path) -> None:
    (folder / "Dockerfile").write_text(TORCH)
    store = ImageStore.of(cluster.shelf)
    made = await build(store, BuildRequest(folder, ImageName.parse("torch:test")))
    await store.push(made, Registry.of(cluster.layout).address)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """Two nodes of its own: one of them is lost."""
    state = tmp_path_factory.mktemp("training")
    manager = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(state)})

    async def up() -> Cluster:
        made = await manager.up("training", ClusterOptions(nodes=2))
        await _give_torch(made, tmp_path_factory.mktemp("torch"))
        return made

    try:
        yield anyio.run(up)
    finally:
        anyio.run(manager.down, "training")


@pytest.fixture(scope="module")
def devctl(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[Devctl]:
    with operated(cluster, tmp_path_factory.mktemp("operator")) as devctl:
        yield devctl


def create(devctl: Devctl, name: str, *options: str) -> str:
    shape = ("--image", "torch:test", "--distributed", "--replicas", "4", "--home-size", "1Gi", "--wait")
    made = devctl("create", name, *shape, *options)
    assert made.returncode == 0, made.stderr
    return made.stderr


def sums(text: str) -> list[str]:
    return sorted(found[1] for found in re.finditer(r"process (\d) of 4 \(gloo\): sum 10 of 10", text))


def test_torchrun_adds_up_over_all_ranks_and_again_after_a_node_was_lost(
    devctl: Devctl, capsys: pytest.CaptureFixture[str]
):
    said = create(devctl, "ddp")
    took = re.search(
        r"All 4 ranks were ready after ([0-9.]+) s, and had their nodes after ([0-9.]+) s\.", said
    )
    assert took is not None, said
    command = ("exec", "ddp", "--all", "--", "torchrun", CHECK)
    clock = SystemClock()
    begun = clock.monotonic()
    assert sums(devctl.good(*command)) == ["0", "1", "2", "3"]
    with capsys.disabled():
        # How long it takes: the figures are part of what is shown.
        print(f"\nset-up {took[1]} s, of which the control plane {took[2]} s;", end=" ")  # noqa: T201 -- figures for the reader
        print(f"all-reduce over 4 ranks {clock.monotonic() - begun:.1f} s")  # noqa: T201 -- figures for the reader
    assert float(took[1]) < SETUP_MAX_S
    assert float(took[2]) <= CONTROL_MAX_S

    ranks = json.loads(devctl.good("describe", "ddp", "-o", "json"))["ranks"]
    lost = ranks[3]["node"]
    os.kill(init_pid(devctl.cluster.layout, lost), signal.SIGKILL)
    devctl.kubectl("wait", f"node/{lost}", "--for=condition=Ready=Unknown", PATIENCE)
    devctl.kubectl("wait", "devserver/ddp", "--for=jsonpath={.status.ready}=false", PATIENCE)
    anyio.run(bring_up, devctl.cluster, find(devctl.cluster.layout, lost))
    devctl.kubectl("wait", f"node/{lost}", "--for=condition=Ready", PATIENCE)
    devctl.until_phase("ddp", "Running")
    assert sums(devctl.good(*command)) == ["0", "1", "2", "3"]
    devctl.good("delete", "ddp", "--yes")


def test_an_elastic_run_goes_on_with_fewer_ranks_and_takes_one_back(devctl: Devctl, tmp_path: Path):
    create(devctl, "elastic", "--min-replicas", "2")
    (tmp_path / "loop.py").write_text(LOOP)
    devctl.good("cp", "--all", str(tmp_path / "loop.py"), "elastic:loop.py")
    start = "nohup torchrun loop.py >log 2>&1 &"
    devctl.good("exec", "elastic", "--all", "--", "sh", "-c", start)
    until_logged(devctl, lambda log: "world 4 sum 4" in log)

    devctl.kubectl("delete", "pod", "elastic-3", "--grace-period=0", "--force")
    until_logged(devctl, lambda log: log.rstrip().endswith("world 3 sum 3"))
    devctl.kubectl("wait", "--for=create", "pod/elastic-3", PATIENCE)
    devctl.kubectl("wait", "--for=condition=Ready", "pod/elastic-3", PATIENCE)
    devctl.until_phase("elastic", "Running")
    devctl.good("exec", "elastic", "--rank", "3", "--", "sh", "-c", start)
    until_logged(devctl, lambda log: log.rstrip().endswith("world 4 sum 4"))
    devctl.good("exec", "elastic", "--all", "--", "touch", "stop")
    devctl.good("delete", "elastic", "--yes")


def until_logged(devctl: Devctl, holds: Callable[[str], bool]) -> None:
    """Reads what rank 0 writes until it is so."""
    with devctl.start("exec", "elastic", "--", "tail", "-n", "+1", "-F", "log") as tail:
        assert tail.stdout is not None
        log = ""
        try:
            for line in tail.stdout:
                log += line
                if holds(log):
                    return
        finally:
            tail.terminate()
    raise AssertionError(log)
