"""gang_scheduling by each gang scheduler that drydock can run: sound, and without its gangs."""

import hashlib
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import msgspec
import pytest

from neorion.conformance.adapters.gangs import GANG_SCHEDULERS
from neorion.conformance.adapters.kinds import NODE
from neorion.conformance.model import CheckResult, Verdict, builtin_profile
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.host import running
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.testing import shared_cluster
from neorion.keel.base import Duration
from neorion.keel.kube import MergePatch
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from tests.conformance.checker import SOUND, Checker, Fault
from tests.conformance.kube.faults import ungated

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.needs("drydock", "gang-schedulers")]
ADDONS = ("pod-groups", "coscheduling", "jobset")
OPTIONS = ClusterOptions((SimulatedNodeGroup(1, "h100x8"),), kueue=True, addons=ADDONS)
HOST = "h100x8-0000"
DEVICES = 3
_NAME = f"gangs-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"


@pytest.fixture(scope="module")
def gang_platform() -> Generator[Cluster]:
    with shared_cluster(_NAME, ClusterManager.of(), OPTIONS) as cluster:
        yield cluster


@pytest.fixture
async def gang_client(gang_platform: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([gang_platform.kubeconfig]).cluster(), "test") as client:
        yield client


@pytest.mark.slow
async def test_gangs_of_every_scheduler(gang_client: Client, tmp_path: Path):
    """All at once, each with devices of its own kind on the one node."""
    faults = {"sound": SOUND, "broken": Fault(ungated)}
    results: dict[tuple[str, str], CheckResult] = {}

    async def one(scheduler: str, name: str) -> None:
        resource = f"test.neorion.dev/{scheduler}-{name}"
        capacity = {"status": {part: {resource: str(DEVICES)} for part in ("capacity", "allocatable")}}
        await gang_client.patch(NODE.raw, HOST, MergePatch(capacity), "", "status")
        profile = msgspec.structs.replace(builtin_profile("nvidia"), resource=resource)
        checker = Checker(gang_client, tmp_path / scheduler / name).with_options(
            profile=profile, gang_scheduler=scheduler, window=Duration.of(seconds=4)
        )
        results[scheduler, name] = await checker.run("gang_scheduling", faults[name])

    async with anyio.create_task_group() as tasks:
        for scheduler in GANG_SCHEDULERS:
            for name in faults:
                tasks.start_soon(one, scheduler.name, name)
    verdicts = {key: result.verdict for key, result in results.items()}
    reasons = {key: result.reason for key, result in results.items()}
    expected = {"sound": Verdict.PASS, "broken": Verdict.FAIL}
    assert verdicts == {key: expected[key[1]] for key in results}, reasons
    assert {result.outcome.subject for result in results.values()} == {each.name for each in GANG_SCHEDULERS}
    for key, result in results.items():
        assert result.left_behind == (), key
        if key[1] == "broken":
            assert "a gang that does not fit" in result.reason


async def test_the_add_ons_start_again_where_they_were(gang_platform: Cluster):
    """Stopped with their cluster, they are back with it; the feature gates stay on."""
    manager = ClusterManager.of()
    for part in ("coscheduling", "jobset"):
        await gang_platform.stop(part)
        assert not running(gang_platform.layout.folder, part)
    cluster = await manager.up(gang_platform.name, ClusterOptions())
    for part in ("coscheduling", "jobset"):
        assert running(cluster.layout.folder, part)
    async with cluster.api() as api:
        for path in (
            "/apis/scheduling.k8s.io/v1alpha2/podgroups",
            "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
            "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        ):
            assert (await api.get(path))["kind"].endswith("List")
