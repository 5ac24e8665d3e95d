"""A cluster with Kueue and one simulated machine, and a way to run one check on it, sound or broken."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.checks import CHECKS
from neorion.conformance.adapters.recording import RecordingApi
from neorion.conformance.adapters.run_folder import RunFolder
from neorion.conformance.adapters.workspace import Options
from neorion.conformance.app.engine import Engine, Request
from neorion.conformance.model import CheckResult, Run, builtin_profile
from neorion.conformance.ports import Recorder
from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.testing import shared_cluster
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Kind
from neorion.keel.kube.client import Client, connect, read_kubeconfig

Json = dict[str, Any]
Change = Callable[[Kind[Any], Json], Json]

_NAME = f"conf-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"
_WISHES = ClusterOptions((SimulatedNodeGroup(1, "h100x8"),), kueue=True)
OPTIONS = Options(builtin_profile("nvidia"), window=Duration.of(seconds=2), patience=Duration.of(seconds=20))


@pytest.fixture(scope="session")
def platform() -> Generator[Cluster]:
    if not ready(*_WISHES.programs):
        pytest.skip("the programs of clusters are not built (neorion drydock build)")
    with shared_cluster(_NAME, ClusterManager.of(), _WISHES) as cluster:
        yield cluster


@pytest.fixture
async def client(platform: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([platform.kubeconfig]).cluster(), "test") as found:
        yield found


class BrokenApi(RecordingApi):
    """A platform that treats what it is given otherwise than it should."""

    def __init__(self, client: Client, recorder: Recorder, change: Change) -> None:
        super().__init__(client, recorder)
        self._change = change

    async def create(self, kind: Kind[Any], manifest: Mapping[str, object]) -> Json:
        return await super().create(kind, self._change(kind, dict(manifest)))


@dataclass
class Checker:
    """Runs one check."""

    client: Client
    folder: Path

    def engine(self, change: Change | None = None, checks: dict[str, Check] | None = None) -> Engine:
        clock = SystemClock()
        folder = RunFolder(self.folder / "run", clock)
        api = BrokenApi(self.client, folder, change) if change else RecordingApi(self.client, folder)
        return Engine(api, folder, clock, OPTIONS, checks or CHECKS)

    async def run(self, requirement: str, change: Change | None = None) -> CheckResult:
        run = await self.whole(requirement, change)
        return next(each for each in run.results if each.requirement == requirement)

    async def whole(self, requirement: str, change: Change | None = None) -> Run:
        return await self.engine(change).run(self.request(requirement), lambda _: None, lambda _: None)

    def request(self, *only: str) -> Request:
        digest = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]
        return Request(f"run-{digest}", "1.35", frozenset(only), "test")


@pytest.fixture
def checker(client: Client, tmp_path: Path) -> Checker:
    return Checker(client, tmp_path)
