"""PyTorch's DDP as a gang of iris on two real nodes: a node is lost, the gang starts again whole and goes on from its checkpoint."""

import io
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BuildRequest, ImageName
from neorion.drydock.node import NodeSpec, Taint, add, bring_up, find, init_pid, remove
from neorion.drydock.testing import namespace
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.node.folder_server import folder_server, get_file, put_file
from tests.node.iris_installation import FENCE, WORKER, cluster_file, group, installed, push_images
from tests.node.pods import NEEDS, Kubectl

pytestmark = [
    pytest.mark.anyio,
    NEEDS,
    pytest.mark.needs("drydock", "mmdebstrap"),
    pytest.mark.slow,
    pytest.mark.timeout(1500),
]

# Debian's own build is for CPUs, with gloo, and for the Python of the worker's image.
TORCH = f"""FROM {WORKER}
RUN apt-get update && apt-get install -y --no-install-recommends python3-torch && rm -rf /var/lib/apt/lists/*
ENV PYTHONPATH=/opt/neorion:/usr/lib/python3/dist-packages
"""
IMAGE = "iris-torch:test"
NODES = ("train-a", "train-b")
STEPS = 60
# A node is lost after this step, so that there is something to resume.
LOST_AFTER = 10
PATIENCE_S = 400
LOOK_EVERY = Duration.of(ms=200)
CLOCK = SystemClock()


def training(store: str, steps: int) -> Callable[[], dict[str, Any]]:
    """A linear model on four ranks. After each step the first rank writes a checkpoint."""

    def train() -> dict[str, Any]:
        import torch  # noqa: PLC0415 -- as above  # pyright: ignore -- only there
        import torch.distributed as dist  # noqa: PLC0415 -- as above  # pyright: ignore -- only there
        from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415 -- as above  # pyright: ignore -- only there

        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
        rank = dist.get_rank()
        torch.manual_seed(1)
        model = DistributedDataParallel(torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        begun = 0
        if kept := get_file(store, "checkpoint"):
            state = torch.load(io.BytesIO(kept))
            begun = state["step"]
            model.load_state_dict(state["model"])
        # All ranks begin at the same step, or their gradients are of different models.
        first = torch.tensor([begun])
        dist.broadcast(first, 0)
        assert int(first.item()) == begun
        loss = torch.tensor(0.0)
        for step in range(begun, steps):
            torch.manual_seed(1000 * step + rank)
            data = torch.randn(16, 4)
            loss = ((model(data) - data.sum(1, keepdim=True)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0:
                body = io.BytesIO()
                torch.save({"step": step + 1, "model": model.state_dict()}, body)
                put_file(store, "checkpoint", body.getvalue())
                put_file(store, f"step-{step + 1}")
            dist.barrier()
            threading.Event().wait(0.2)
        weights = [round(float(one), 5) for one in model.module.weight.flatten()]
        dist.destroy_process_group()
        return {
            "rank": rank,
            "world": int(os.environ["WORLD_SIZE"]),
            "address": os.environ["IRIS_VM_ADDRESS"],
            "gang": os.environ["IRIS_GANG_ID"],
            "begun": begun,
            "loss": float(loss.item()),
            "weights": weights,
        }

    return train


@pytest.fixture(scope="module")
async def nodes(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cluster]:
    """Two nodes beside those that all tests share."""
    folder = tmp_path_factory.mktemp("torch")
    (folder / "Dockerfile").write_text(TORCH)
    await push_images(node_cluster, BuildRequest(folder, ImageName.parse(IMAGE)))
    try:
        for name in NODES:
            await add(node_cluster, name, NodeSpec({"iris-test": "training"}, (Taint.parse(FENCE),)))
        yield node_cluster
    finally:
        for name in NODES:
            await remove(node_cluster, name)


@pytest.mark.parametrize("runtime", ["process", "kubernetes"])
async def test_a_training_goes_on_from_its_checkpoint_after_a_node_was_lost(
    nodes: Cluster, tmp_path: Path, runtime: str
):
    store = tmp_path / "store"
    store.mkdir()
    async with namespace(nodes) as name:
        file = cluster_file(name, scale_groups={"train": group(2, runtime, {"iris-test": "training"})})
        file["defaults"]["bootstrap"]["docker_image"] = IMAGE
        with folder_server(store, str(nodes.layout.addresses.host)) as address:
            async with installed(Kubectl(nodes, name), tmp_path, file) as iris, iris.client() as client:
                job = await client.gang(
                    training(address, STEPS),
                    "ddp",
                    replicas=4,
                    resources={"cpu": 0.65, "memory": "800Mi"},
                    preemption_retries=5,
                )
                with anyio.fail_after(PATIENCE_S):
                    while not (store / f"step-{LOST_AFTER}").exists():
                        await CLOCK.sleep(LOOK_EVERY)
                lost = NODES[1]
                os.kill(init_pid(nodes.layout, lost), signal.SIGKILL)
                at = len(list(store.glob("step-*")))
                await iris.kubectl("wait", f"node/{lost}", "--for=condition=Ready=Unknown", "--timeout=180s")
                await bring_up(nodes, find(nodes.layout, lost))
                ranks = await client.wait(job, timeout=PATIENCE_S)
                tries = [task.tries for task in await job.tasks()]
    assert [one["rank"] for one in ranks] == [0, 1, 2, 3]
    # Whole: one gang, of which each rank began at the same checkpoint, and on both nodes.
    assert len({one["gang"] for one in ranks}) == 1
    assert len({one["address"].rpartition(".")[0] for one in ranks}) == 2
    assert {one["begun"] for one in ranks} == {max(ranks[0]["begun"], LOST_AFTER)}
    assert LOST_AFTER <= ranks[0]["begun"] <= at + 1
    assert tries == [2, 2, 2, 2]
    assert len({tuple(one["weights"]) for one in ranks}) == 1
    assert ranks[0]["loss"] < 0.1
    assert len(list(store.glob("step-*"))) == STEPS
