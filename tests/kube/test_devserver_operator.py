"""The operator of development servers on a real API server, with real controllers around it and simulated nodes."""

import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import aiohttp
import anyio
import msgspec
import pytest

from neorion.devservers.app.operator import LEASE as LEASE_NAME
from neorion.devservers.client import DevServerApi
from neorion.devservers.decide import HOME_DELETE_AFTER
from neorion.devservers.model import ConditionType, Deadline, DevServerStatus, Phase, StopReason
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERFLAVORS, DEVSERVERS, ServerDeployment
from neorion.drydock.cluster import Cluster
from neorion.drydock.storage.volumes import CLASS
from neorion.keel.base import Duration, NotFound
from neorion.keel.kube import Kind, KubeObject, MergePatch, ObjectKey, ServerError
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import LEASE, RESOURCE_QUOTA, SERVICE
from tests.kube.dev_room import CLOCK, PATIENCE_S, Room, growing_homes, operating, owned_by

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(480)]

WEBHOOKS = Kind(
    KubeObject,
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    "admissionregistration.k8s.io",
    namespaced=False,
)
ZONE = "topology.kubernetes.io/zone"


async def test_a_server_that_is_created_runs_and_everything_of_it_is_its_own(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"), ports=[{"name": "web", "port": 8080}])
        server = await room.until_phase("mydev", Phase.RUNNING)
        await room.until(lambda: room.told("mydev", "Ready"))
    assert server.status.ready
    assert server.status.message is None
    assert server.status.pod_names == (room.pod("mydev").meta.name,)
    assert server.status.urls == {"web": f"http://mydev-ssh.{room.namespace}.svc:8080"}
    done = {one.type for one in server.status.conditions if one.status == "True"}
    steps = {ConditionType.FLAVOR, ConditionType.VOLUME, ConditionType.SCHEDULED, ConditionType.READY}
    assert steps <= done
    body, home = room.bodies.get(server.meta.key), room.home("mydev")
    service = room.services.get(ObjectKey(room.namespace, "mydev-ssh"))
    assert body is not None
    assert service is not None
    assert home is not None
    assert owned_by(body, server)
    assert owned_by(service, server)
    assert home.meta.owners == ()


async def test_more_cpu_in_a_flavor_reaches_the_servers_on_it_without_another_pod(
    fleet_api: Client, room: Room
):
    async with operating(fleet_api, room.namespace):
        small, other = await room.flavor("small"), await room.flavor("other")
        for name, flavor in (("one", small), ("two", small), ("three", other)):
            await room.create(name, flavor)
        for name in ("one", "two", "three"):
            await room.until_phase(name, Phase.RUNNING)
        pods = {name: room.pod(name).meta.uid for name in ("one", "two", "three")}
        more = {"cpu": "200m", "memory": "128Mi"}
        await fleet_api.patch(
            DEVSERVERFLAVORS, small, MergePatch({"spec": {"resources": {"requests": more, "limits": more}}})
        )
        await room.until(lambda: all(room.cpu(name) == "200m" for name in ("one", "two")))
    assert room.cpu("three") == "100m"
    assert {name: room.pod(name).meta.uid for name in pods} == pods


async def test_another_flavor_with_other_nodes_takes_another_pod_and_the_same_home(
    fleet_api: Client, room: Room
):
    async with operating(fleet_api, room.namespace):
        east = await room.flavor("east", nodeSelector={ZONE: "US-EAST-04A"})
        west = await room.flavor("west", nodeSelector={ZONE: "US-EAST-04B"})
        await room.create("mydev", east)
        await room.until_phase("mydev", Phase.RUNNING)
        pod, home = room.pod("mydev"), room.home_uid("mydev")
        await room.change("mydev", flavor=west)
        await room.until(
            lambda: any(one.spec.node_selector == {ZONE: "US-EAST-04B"} for one in room.pods_of("mydev"))
        )
        server = await room.until_phase("mydev", Phase.RUNNING)
    assert room.pod("mydev").meta.uid != pod.meta.uid
    assert room.home_uid("mydev") == home
    assert server.status.flavor is not None
    assert server.status.flavor.applied == west


async def test_a_server_whose_time_is_over_rests_then_goes_and_last_goes_its_home(
    fleet_api: Client, room: Room
):
    async with operating(fleet_api, room.namespace):
        lifecycle = {"timeToLive": "4s", "retention": "3s", "autoShutdown": False}
        await room.create("mydev", await room.flavor("small"), lifecycle=lifecycle, home={"retention": "8s"})
        server = await room.until_phase("mydev", Phase.EXPIRED)
        assert server.status.stop_reason is StopReason.EXPIRED
        assert room.pods_of("mydev") == []
        home = room.home_uid("mydev")
        await room.until_gone("mydev")
        kept = room.home("mydev")
        assert kept is not None
        assert kept.meta.uid == home
        assert HOME_DELETE_AFTER in kept.meta.annotations
        await room.until(lambda: room.home("mydev") is None)


async def test_extensions_add_up_however_close_they_come(fleet_api: Client, room: Room):
    """Without an operator: none of them waits until the status tells of the one before."""
    server = await room.create("mydev", await room.flavor("small"), lifecycle={"timeToLive": "2h"})
    fleet = DevServerApi(fleet_api, room.namespace, CLOCK)
    since = fleet.now()
    deadline = Deadline(time=since + timedelta(hours=2), reason=StopReason.EXPIRED)
    status = DevServerStatus(
        phase=Phase.RUNNING,
        observed_generation=server.meta.generation,
        running_since=since,
        deadline=deadline,
    )
    told = MergePatch({"status": msgspec.to_builtins(status)})
    await fleet_api.patch(DEVSERVERS, "mydev", told, room.namespace, subresource="status")
    async with anyio.create_task_group() as users:
        for _ in range(8):
            users.start_soon(fleet.extend, "mydev", timedelta(hours=1))
    assert (await fleet.extend("mydev", timedelta(hours=1))).end == since + timedelta(hours=11)
    assert (await fleet.server("mydev")).spec.lifecycle.extended_until == since + timedelta(hours=11)


async def test_a_server_of_the_same_name_takes_a_kept_home_over(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        small = await room.flavor("small")
        await room.create("mydev", small, home={"retention": "1h"})
        await room.until_phase("mydev", Phase.RUNNING)
        before = room.home_uid("mydev")
        await room.delete("mydev")
        await room.until(lambda: room.server("mydev") is None and is_marked(room))
        await room.create("mydev", small)
        await room.until_phase("mydev", Phase.RUNNING)
        await room.until(lambda: not is_marked(room))
    assert room.home_uid("mydev") == before


async def test_a_kept_home_keeps_its_class_and_every_server_that_had_it_goes(fleet_api: Client, room: Room):
    """Of a claim that stands, the API server takes neither another class nor none where one was named."""
    homes: tuple[dict[str, str], ...] = ({"storageClass": CLASS}, {"storageClass": "another"}, {})
    uids = set[str]()
    async with operating(fleet_api, room.namespace):
        small = await room.flavor("small")
        for home in homes:
            await room.create("mydev", small, home=home)
            await room.until_phase("mydev", Phase.RUNNING)
            uids.add(room.home_uid("mydev"))
            await room.delete("mydev")
            await room.until_gone("mydev")
    assert len(uids) == 1


def is_marked(room: Room) -> bool:
    home = room.home("mydev")
    return home is not None and HOME_DELETE_AFTER in home.meta.annotations


async def test_a_stopped_server_has_no_pod_and_comes_back_when_started(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"))
        await room.until_phase("mydev", Phase.RUNNING)
        home = room.home_uid("mydev")
        await room.change("mydev", running=False)
        stopped = await room.until_phase("mydev", Phase.STOPPED)
        assert stopped.status.stop_reason is StopReason.ASKED
        assert room.pods_of("mydev") == []
        await room.change("mydev", running=True)
        await room.until_phase("mydev", Phase.RUNNING)
    assert room.home_uid("mydev") == home


async def test_what_somebody_changed_behind_the_operator_is_repaired(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"))
        await room.until_phase("mydev", Phase.RUNNING)

        def repaired(vandalized: ServerDeployment) -> bool:
            body = room.bodies.get(vandalized.meta.key)
            if body is None or body.meta.resource_version == vandalized.meta.resource_version:
                return False
            return body.spec.replicas == 1

        nobody = MergePatch({"spec": {"replicas": 0}})
        stopped = await fleet_api.patch(DEPLOYMENTS, "mydev", nobody, room.namespace)
        await room.until(lambda: repaired(stopped))
        await fleet_api.delete(DEPLOYMENTS, "mydev", room.namespace)
        await room.until(lambda: repaired(stopped) and uid_of(room) not in ("", stopped.meta.uid))
        await room.until_phase("mydev", Phase.RUNNING)


def uid_of(room: Room) -> str:
    body = room.bodies.get(ObjectKey(room.namespace, "mydev"))
    return body.meta.uid if body else ""


async def test_a_flavor_that_has_no_node_is_told_and_the_server_goes_on_until_there_is_one(
    fleet_api: Client, room: Room
):
    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"))
        await room.until_phase("mydev", Phase.RUNNING)
        pod = room.pod("mydev").meta.uid
        moon = await room.flavor("moon", nodeSelector={ZONE: "the-moon"})
        await room.change("mydev", flavor=moon)
        await room.until(lambda: room.told("mydev", "NoSuchNode"))
        server = await room.until_phase("mydev", Phase.RUNNING)
        assert server.status.message == (
            f'No node is of the kind the flavor "{moon}" asks for: {ZONE}=the-moon. The server goes on as it is.'
        )
        assert room.pod("mydev").meta.uid == pod
        await fleet_api.patch(
            DEVSERVERFLAVORS, moon, MergePatch({"spec": {"nodeSelector": {ZONE: "US-EAST-04B"}}})
        )
        await room.until(
            lambda: [one.spec.node_selector for one in room.pods_of("mydev")] == [{ZONE: "US-EAST-04B"}]
        )
        # The new pod is seen a moment before what the operator says of it.
        await room.until(lambda: (seen := room.server("mydev")) is not None and seen.status.message is None)
        await room.until_phase("mydev", Phase.RUNNING)


async def test_a_quota_that_is_too_small_holds_a_larger_flavor(fleet_api: Client, room: Room):
    quota = {
        "metadata": {"name": "team", "namespace": room.namespace},
        "spec": {"hard": {"requests.cpu": "1"}},
    }
    await fleet_api.create(RESOURCE_QUOTA.raw, quota)
    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"))
        await room.until_phase("mydev", Phase.RUNNING)
        pod = room.pod("mydev").meta.uid
        await room.change(
            "mydev", flavor=await room.flavor("large", cpu="2", nodeSelector={ZONE: "US-EAST-04A"})
        )
        await room.until(lambda: room.told("mydev", "QuotaShort"))
        await room.until_phase("mydev", Phase.RUNNING)
        assert room.pod("mydev").meta.uid == pod


def _message(room: Room) -> str:
    server = room.server("mydev")
    return (server.status.message if server else None) or ""


@pytest.mark.parametrize(
    ("counted", "few", "enough"), [("requests.cpu", "50m", "1"), ("requests.storage", "1Mi", "10Gi")]
)
async def test_a_quota_without_room_is_told_until_there_is_some(
    fleet_api: Client, room: Room, counted: str, few: str, enough: str
):
    """Of the pod, which its Deployment makes, and of the home, which the operator makes itself."""
    quota = {"metadata": {"name": "team", "namespace": room.namespace}, "spec": {"hard": {counted: few}}}
    await fleet_api.create(RESOURCE_QUOTA.raw, quota)
    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"))
        await room.until(lambda: _message(room).startswith(f'The quota "team" has no room: {counted}='))
        await room.until(lambda: room.told("mydev", "QuotaExceeded"))
        await room.until_phase("mydev", Phase.PENDING)
        await fleet_api.patch(
            RESOURCE_QUOTA, "team", MergePatch({"spec": {"hard": {counted: enough}}}), room.namespace
        )
        # What stopped and starts is tried at once; Kubernetes itself waits longer from time to time.
        await room.change("mydev", running=False)
        await room.until_phase("mydev", Phase.STOPPED)
        await room.change("mydev", running=True)
        running = await room.until_phase("mydev", Phase.RUNNING)
        assert running.status.message is None


async def test_a_cluster_that_fails_at_it_is_told_until_it_does_not(fleet_api: Client, room: Room):
    """By a webhook that the API server has to ask before it makes a Service, and that is not there."""
    hook = {
        "name": "nobody.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": room.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    await fleet_api.create(WEBHOOKS, {"metadata": {"name": room.namespace}, "webhooks": [hook]})
    try:
        with anyio.fail_after(PATIENCE_S), pytest.raises(ServerError, match="nobody"):
            await make_again_and_again(fleet_api.rehearsing(), room.namespace)
        async with operating(fleet_api, room.namespace):
            await room.create("mydev", await room.flavor("small"))
            told = 'The cluster refuses what the server needs: Internal error occurred: failed calling webhook "nobody'
            await room.until(lambda: _message(room).startswith(told))
            await room.until(lambda: room.told("mydev", "Refused"))
            await fleet_api.delete(WEBHOOKS, room.namespace)
            running = await room.until_phase("mydev", Phase.RUNNING)
            assert running.status.message is None
    finally:
        with suppress(NotFound):
            await fleet_api.delete(WEBHOOKS, room.namespace)


async def make_again_and_again(api: Client, namespace: str) -> None:
    """An API server takes up a webhook on its own time."""
    service = {"metadata": {"name": "any", "namespace": namespace}, "spec": {"ports": [{"port": 80}]}}
    while True:
        await api.create(SERVICE.raw, service)
        await CLOCK.sleep(Duration.of(ms=50))


async def test_a_home_grows_once_its_class_allows(fleet_api: Client, room: Room):
    def size() -> str:
        home = room.home("mydev")
        return home.spec.resources.requests["storage"] if home else ""

    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"))
        await room.until_phase("mydev", Phase.RUNNING)
        home = room.home_uid("mydev")
        await room.change("mydev", persistentHomeSize="2Gi")
        await room.until(lambda: room.told("mydev", "HomeCannotGrow"))
        assert size() == "1Gi"
        async with growing_homes(fleet_api):
            await room.change("mydev", persistentHomeSize="3Gi")
            await room.until(lambda: size() == "3Gi")
        await room.until_phase("mydev", Phase.RUNNING)
    assert room.home_uid("mydev") == home


async def test_in_steady_state_nothing_is_written_not_even_by_an_operator_that_starts_anew(
    fleet_api: Client, room: Room
):
    small = await room.flavor("small")
    async with operating(fleet_api, room.namespace) as first:
        for number in range(5):
            await room.create(f"calm-{number}", small)
        for number in range(5):
            await room.until_phase(f"calm-{number}", Phase.RUNNING)
        await settled(room, small, "first-guest")
        before, written = room.versions("calm-"), len(first.writes)
        await settled(room, small, "second-guest")
        assert [one for one in first.writes[written:] if "second-guest" not in one] == []
    async with operating(fleet_api, room.namespace) as second:
        await settled(room, small, "third-guest")
    assert [one for one in second.writes if "third-guest" not in one] == []
    assert room.versions("calm-") == before


async def settled(room: Room, flavor: str, guest: str) -> None:
    """By the time a newcomer runs, whatever was to be done before has been done."""
    await room.create(guest, flavor)
    await room.until_phase(guest, Phase.RUNNING)


@contextmanager
def process(kubeconfig: Path, file: Path) -> Generator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "neorion.devservers", "operator", "--config", str(file)]
    started = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig)])
    try:
        yield started
    finally:
        started.kill()
        started.wait()


async def test_the_process_serves_says_how_it_is_and_gives_its_lease_back(
    fleet: Cluster, fleet_api: Client, room: Room, tmp_path: Path
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = tmp_path / "operator.yaml"
    file.write_text(f"namespace: {room.namespace}\nscope: {room.namespace}\nport: {port}\n")
    with process(fleet.kubeconfig, file) as started, anyio.fail_after(PATIENCE_S):
        await room.create("mydev", await room.flavor("small"))
        await room.until_phase("mydev", Phase.RUNNING)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
            for path, words in (("/healthz", "ok"), ("/readyz", "ok"), ("/metrics", "servers")):
                async with http.get(path) as answer:
                    assert answer.status == 200
                    assert words in await answer.text()
        started.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(started.wait) == 0
    assert (await fleet_api.get(LEASE, LEASE_NAME, room.namespace)).spec.holder_identity == ""
