"""What disturbs a run: interruptions, an API server that restarts or fails at random, and objects that do not go.

Such a run never ends in a false PASS or FAIL, and it leaves the cluster clean.
"""

import asyncio
import hashlib
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from neorion.conformance.adapters.checks import CHECKS
from neorion.conformance.adapters.kinds import JOB
from neorion.conformance.adapters.recording import RecordingApi
from neorion.conformance.adapters.removal import clean_up
from neorion.conformance.adapters.run_folder import RunFolder, load_run, verify_run
from neorion.conformance.app.engine import Engine
from neorion.conformance.model import CheckResult, Verdict
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.testing import shared_cluster
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Kind, MergePatch
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import NAMESPACE
from tests.conformance.checker import SOUND, Checker, Fault
from tests.conformance.flaky import flaky
from tests.conformance.kube.faults import unguarded
from tests.conformance.kube.test_platforms import assert_clean

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(300),
    pytest.mark.needs("drydock"),
    pytest.mark.usefixtures("cut_connections"),
]
Json = dict[str, Any]
T = TypeVar("T")
CHECK = "robust_controller"
HELD = "test.neorion.dev/held"
_OWN = f"chaos-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"


class InterruptedApi(RecordingApi):
    """Interrupts its run at the n-th request, counted from the check's namespace: before it is sent, or on its way."""

    scope: anyio.CancelScope
    left: int
    on_its_way: bool
    begun = False

    async def _recorded(
        self, verb: str, path: str, body: Mapping[str, object] | None, call: Callable[[], Awaitable[T]]
    ) -> T:
        self.begun = self.begun or (verb, path) == ("create", "/api/v1/namespaces")
        self.left -= self.begun
        if self.left == 0 and self.begun and self.on_its_way:
            # Sent at the first step of the loop; cancelled at the second.
            asyncio.get_running_loop().call_later(0.001, self.scope.cancel)
        elif self.left == 0 and self.begun:
            self.scope.cancel()
        return await super()._recorded(verb, path, body, call)


async def interrupted(checker: Checker, at: int, *, on_its_way: bool) -> None:
    folder = RunFolder(checker.folder, SystemClock())
    api = InterruptedApi(checker.client, folder)
    with anyio.CancelScope() as api.scope:
        api.left, api.on_its_way = at, on_its_way
        engine = Engine(api, folder, SystemClock(), checker.options, CHECKS)
        await engine.run(checker.request(CHECK), lambda _: None, lambda _: None)
    assert api.scope.cancelled_caught, f"the run was over before its request {at}"


# Each is tried in one of the two ways.
PLACES = tuple((at, at % 2 == 0) for at in (1, 2, 3, 4, 6, 7, 9, 12))


async def test_interrupted_at_any_request_it_cleans_up(checker: Checker, client: Client):
    checkers = [replace(checker, folder=checker.folder / f"{at}-{moment}") for at, moment in PLACES]
    async with anyio.create_task_group() as tasks:
        for each, (at, moment) in zip(checkers, PLACES, strict=True):
            tasks.start_soon(partial(interrupted, each, at, on_its_way=moment))
    for each in checkers:
        run = load_run(each.folder)
        assert run.interrupted
        assert not any(result.verdict in {Verdict.PASS, Verdict.FAIL} for result in run.results)
        assert verify_run(each.folder) == []
        await assert_clean(each, client)


async def test_ctrl_c_of_the_command_cleans_up(platform: Cluster, client: Client, tmp_path: Path):
    """The command itself, as a person runs it: the signal arrives while the check works in its namespace."""
    words = ["conformance", "run", "--only", CHECK, "--kubeconfig", platform.kubeconfig, "--folder", tmp_path]
    command = [sys.executable, "-m", "neorion", *map(str, words)]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL) as process:
        namespace = await begun_by(client, JOB)
        process.send_signal(signal.SIGINT)
        assert await process.wait() not in {0, 1}
    (folder,) = tmp_path.iterdir()
    run = load_run(folder)
    assert run.interrupted
    assert not any(result.verdict in {Verdict.PASS, Verdict.FAIL} for result in run.results)
    assert verify_run(folder) == []
    with pytest.raises(NotFound):
        await client.get(NAMESPACE, namespace)


async def test_a_namespace_that_does_not_go_is_named_and_is_no_verdict(
    checker: Checker, client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("neorion.conformance.adapters.removal.GONE_MOST", Duration.of(seconds=2))

    def held(kind: Kind[Any], manifest: Json) -> Json:
        if kind is JOB and manifest["metadata"]["name"] == "unmanaged":
            manifest = {**manifest, "metadata": {**manifest["metadata"], "finalizers": [HELD]}}
        return manifest

    result = await checker.run(CHECK, Fault(held))
    assert result.verdict is Verdict.PASS, result.reason
    assert [each for each in result.left_behind if each.startswith("Namespace") and "still there" in each]
    namespace = result.left_behind[-1].split()[1]
    await client.patch(JOB.raw, "unmanaged", MergePatch({"metadata": {"finalizers": None}}), namespace)
    monkeypatch.undo()
    _, stays = await clean_up(RecordingApi(client, Unrecorded()), SystemClock(), checker.request().id)
    assert stays == []
    await assert_clean(checker, client)


async def test_an_api_server_that_fails_at_random_gives_no_false_verdict(
    checker: Checker, platform: Cluster, client: Client
):
    """The truth is known: one platform is sound, the other has a webhook that refuses nothing."""
    false = {"sound": Verdict.FAIL, "broken": Verdict.PASS}
    faults = {"sound": SOUND, "broken": Fault(unguarded)}
    results: dict[tuple[str, int], CheckResult] = {}
    failures: list[int] = []

    async def one(name: str, seed: int) -> None:
        async with flaky(platform, seed) as (server, through):
            own = replace(checker, client=through, folder=checker.folder / f"{name}-{seed}")
            results[name, seed] = await own.run(CHECK, faults[name])
            failures.append(server.failures)
        await assert_clean(own, client)

    async with anyio.create_task_group() as tasks:
        for name in faults:
            for seed in range(4):
                tasks.start_soon(one, name, seed)
    assert sum(failures) >= len(failures)
    verdicts = {key: (result.verdict, result.reason) for key, result in results.items()}
    assert [key for key, (verdict, _) in verdicts.items() if verdict is false[key[0]]] == [], verdicts
    assert Verdict.ERROR in {verdict for verdict, _ in verdicts.values()}, verdicts
    assert {each for result in results.values() for each in result.left_behind} == set()


@pytest.fixture(scope="module")
def own_platform() -> Generator[Cluster]:
    """Nothing else is checked here: its API server is killed."""
    options = ClusterOptions((SimulatedNodeGroup(1, "h100x8"),), kueue=True)
    with shared_cluster(_OWN, ClusterManager.of(), options) as cluster:
        yield cluster


@pytest.mark.parametrize("requirement", ["gang_scheduling", CHECK])
async def test_an_api_server_that_is_killed_in_a_run_gives_no_verdict(
    own_platform: Cluster, tmp_path: Path, requirement: str
):
    async with connect(read_kubeconfig([own_platform.kubeconfig]).cluster(), "test") as client:
        checker = Checker(client, tmp_path)
        results: list[CheckResult] = []

        async def check() -> None:
            results.append(await checker.run(requirement))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check)
            await begun_by(client, JOB)
            await own_platform.stop("kube-apiserver")
            await own_platform.start_control_plane()
        (result,) = results
        assert result.verdict is Verdict.ERROR, result.reason
        assert result.left_behind == ()
        assert verify_run(checker.run_folder) == []
        await assert_clean(checker, client)
        # Once the server is back the same check passes.
        again = await checker.run(requirement)
        assert again.verdict is Verdict.PASS, again.reason


async def begun_by(client: Client, kind: Kind[Any]) -> str:
    """The namespace of the first object of this kind, once a run has made one."""
    async with client.watch(kind.raw) as events:
        async for event in events:
            if made := getattr(event, "object", None):
                return str(made["metadata"]["namespace"])
    raise AssertionError("the watch ended")


class Unrecorded:
    """Cleaning up is no evidence."""

    def record(self, kind: str, fields: Mapping[str, object]) -> None:
        """Keeps nothing."""
