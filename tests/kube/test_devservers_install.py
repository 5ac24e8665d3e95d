"""An installation comes, changes and goes on a real API server, and what users have stays."""

import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import structs

from neorion.devservers.adapters.install import GUARDS, ChangeType, ImageOverrides, Installer, Overlay, bundle
from neorion.devservers.adapters.install.bundle import rendered
from neorion.devservers.adapters.install.resource_kinds import kind_of
from neorion.devservers.adapters.users import TenantManager, UserRequest
from neorion.devservers.cli import app
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS
from neorion.devservers.model.user import UserQuota
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Conflict, Deadline, Denied, Duration, Invalid, NotFound, Unauthenticated
from neorion.keel.cli import run
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Bookmark, InvalidObject, MergePatch, ObjectKey, UnknownKind, condition
from neorion.keel.kube.client import Client, StaticToken, connect, read_kubeconfig
from neorion.keel.kube.core import CLAIM, CONFIG_MAP, DEPLOYMENT, NAMESPACE, POD, SERVICE, SERVICE_ACCOUNT
from tests.kube.aws_installation import check_the_parts_of_aws
from tests.kube.new_kinds import restart_controllers
from tests.kube.user_controller import provision, provisioning_beside

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parent.parent.parent
SYSTEM = "devservers-system"
OPERATOR = ObjectKey(SYSTEM, "devservers-operator")
LOCAL = bundle(Overlay.LOCAL)
# The least with which there can be users: the kinds, and the guards.
LEAST = tuple(one for one in LOCAL if one["kind"] == "CustomResourceDefinition" or one["kind"] in GUARDS)
A_MINUTE, LET_GO = Duration.of(minutes=1), MergePatch({"metadata": {"finalizers": []}})


@pytest.fixture
async def client(own_cluster: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "test") as made:
        yield made


@pytest.fixture
async def installer(client: Client) -> AsyncGenerator[Installer]:
    """Of a cluster that has nothing of it before and after."""
    yield Installer(client)
    for user in await TenantManager(client).all():
        await TenantManager(client).remove(user.name, A_MINUTE, with_homes=True)
    with suppress(UnknownKind):
        for server in (await client.list(DEVSERVERS)).items:
            await client.delete(DEVSERVERS, server.meta.name, server.meta.namespace)
            with suppress(NotFound):
                # No operator runs here that would do it.
                await client.patch(DEVSERVERS, server.meta.name, LET_GO, server.meta.namespace)
    await Installer(client).uninstall(purge=True, patience=Duration.of(minutes=3))


@pytest.fixture
async def users(own_cluster: Cluster, client: Client, installer: Installer) -> TenantManager:
    await installer.install(LEAST)
    await restart_controllers(own_cluster)
    return TenantManager(client)


def outcomes(steps: Any) -> set[ChangeType]:
    return {step.outcome for step in steps}


def manifest_of(kind: str, name: str) -> Any:
    [found] = [one for one in LOCAL if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def younger(manifest: Any) -> Any:
    """As a version would have been that knew no ports yet, and refused less."""
    body = json.loads(json.dumps(manifest))
    if body["metadata"]["name"] == "devservers.devservers.io":
        root = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        spec = root["properties"]["spec"]
        del spec["properties"]["ports"]
        for part in (root, spec, spec["properties"]["volumes"]["items"]):
            del part["x-kubernetes-validations"]
    return body


def covering_its_home(name: str) -> dict[str, Any]:
    """A server that the newest definition refuses and a younger one took."""
    over = [{"claimName": "data", "mountPath": "/home/dev"}]
    meta = {"name": name, "namespace": "default", "finalizers": ["devservers.io/home"]}
    return {"metadata": meta, "spec": {"flavor": "mine", "volumes": over}}


async def until_the_newest_definition_counts(client: Client) -> None:
    """An API server takes up a changed definition on its own time, and says nowhere that it has."""
    with anyio.fail_after(60), pytest.raises(InvalidObject, match="/home/dev"):
        await _create_again_and_again(client.rehearsing())


async def _create_again_and_again(client: Client) -> None:
    while True:
        await client.create(DEVSERVERS, covering_its_home("box"))
        await SystemClock().sleep(Duration.of(ms=50))


@pytest.mark.parametrize("overlay", Overlay)
def test_kustomize_renders_what_devctl_carries(own_cluster: Cluster, overlay: Overlay):
    folder = ROOT / "infra/devservers" / overlay.value
    command = [str(own_cluster.shelf.path("kubectl")), "kustomize", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    carried = ROOT / f"src/neorion/devservers/adapters/install/manifests/{overlay.value}.yaml"
    assert done.stdout == carried.read_text(), "run make generate"


async def test_everything_is_there_after_the_first_time_and_nothing_happens_at_the_second(
    client: Client, installer: Installer
):
    planned = await installer.plan(LOCAL)
    assert outcomes(planned) == {ChangeType.CREATED}
    with pytest.raises(UnknownKind):
        await client.list(DEVSERVERS)
    assert await installer.install(LOCAL) == planned
    assert (await client.get(DEPLOYMENT, *reversed(OPERATOR))).spec.replicas == 2
    versions = (await client.get(DEPLOYMENT, *reversed(OPERATOR))).meta.generation
    assert outcomes(await installer.install(LOCAL)) == {ChangeType.UNCHANGED}
    assert (await client.get(DEPLOYMENT, *reversed(OPERATOR))).meta.generation == versions


async def test_the_overlay_for_the_cloud_is_taken_whole_but_for_kinds_the_cluster_lacks(
    client: Client, installer: Installer
):
    cloud = bundle(Overlay.AWS, ImageOverrides("registry.example/operator:1"), "fs-1")
    steps = await installer.install(cloud)
    left = {step.kind for step in steps if step.outcome is ChangeType.LEFT_OUT}
    assert left <= {"ServiceMonitor", "PrometheusRule", "EC2NodeClass", "NodePool"}
    assert len((await client.list(DEVSERVERFLAVORS)).items) == 16
    await check_the_parts_of_aws(client)
    # A price is the cluster's own, whatever an upgrade brings.
    await client.patch(DEVSERVERFLAVORS, "p3.2xlarge", MergePatch({"spec": {"price": {"perHour": "1.00"}}}))
    assert outcomes(await installer.install(cloud)) == {ChangeType.UNCHANGED, ChangeType.LEFT_OUT}
    price = (await client.get(DEVSERVERFLAVORS, "p3.2xlarge")).spec.price
    assert (price.per_hour if price else None) == "1.00"


async def test_an_upgrade_changes_what_differs_and_takes_away_what_is_no_longer_part_of_it(
    client: Client, installer: Installer
):
    old = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "of-an-older-version",
            "namespace": SYSTEM,
            "labels": {"app.kubernetes.io/part-of": "devservers"},
        },
    }
    await installer.install((*map(younger, LOCAL), old))
    await client.create(DEVSERVERFLAVORS, {"metadata": {"name": "mine"}, "spec": {"resources": {}}})
    server = {"metadata": {"name": "box", "namespace": "default"}, "spec": {"flavor": "mine"}}
    made = await client.create(DEVSERVERS, server)
    steps = await installer.install(bundle(Overlay.LOCAL, ImageOverrides("devservers-operator:next")))
    news = {(step.name, step.outcome) for step in steps if step.outcome is not ChangeType.UNCHANGED}
    assert news == {
        ("devservers.devservers.io", ChangeType.CHANGED),
        ("of-an-older-version", ChangeType.REMOVED),
        ("devservers-operator", ChangeType.CHANGED),
        ("devservers-bastion", ChangeType.CHANGED),
    }
    assert (await client.get(DEVSERVERS, "box", "default")).meta.uid == made.meta.uid
    assert await client.get(DEVSERVERFLAVORS, "mine")
    await until_the_newest_definition_counts(client)
    port = {"name": "web", "port": 8080}
    changed = await client.patch(DEVSERVERS, "box", MergePatch({"spec": {"ports": [port]}}), "default")
    assert [one.port for one in changed.spec.ports] == [8080]
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, "of-an-older-version", SYSTEM)


async def test_what_an_upgrade_would_refuse_and_is_there_can_still_be_changed_and_let_go(
    client: Client, installer: Installer
):
    await installer.install(tuple(map(younger, LOCAL)))
    made = await client.create(DEVSERVERS, covering_its_home("old.box"))
    await installer.install(LOCAL)
    await until_the_newest_definition_counts(client)
    stopped = await client.patch(DEVSERVERS, "old.box", MergePatch({"spec": {"running": False}}), "default")
    assert (stopped.meta.uid, stopped.spec.running) == (made.meta.uid, False)
    await client.delete(DEVSERVERS, "old.box", "default")
    await client.patch(DEVSERVERS, "old.box", LET_GO, "default")
    with pytest.raises(NotFound):
        await client.get(DEVSERVERS, "old.box", "default")


async def test_what_the_server_refuses_leaves_nothing_behind(client: Client, installer: Installer):
    wrong = [json.loads(json.dumps(one)) for one in LOCAL]
    role = next(one for one in wrong if one["kind"] == "ClusterRole")
    role["rules"][0]["verbs"] = []
    with pytest.raises(Invalid):
        await installer.install(tuple(wrong))
    with pytest.raises(UnknownKind):
        await client.list(DEVSERVERS)
    with pytest.raises(NotFound):
        await client.get(NAMESPACE, SYSTEM)


async def test_who_may_not_install_changes_nothing(client: Client, installer: Installer):
    with pytest.raises(Denied):
        await Installer(client.acting_as("mallory", ["system:authenticated"])).install(LOCAL)
    assert outcomes(await installer.plan(LOCAL)) == {ChangeType.CREATED}


async def test_a_change_by_somebody_else_is_not_lost_without_a_word(client: Client, installer: Installer):
    await installer.install(LOCAL)
    mine = MergePatch({"data": {"operator.yaml": "default_image: mine\n"}})
    await client.patch(CONFIG_MAP, OPERATOR.name, mine, SYSTEM)
    with pytest.raises(Conflict, match="Another manager has changed ConfigMap devservers-operator"):
        await installer.install(LOCAL)
    assert (await client.get(CONFIG_MAP, OPERATOR.name, SYSTEM)).data == mine.body["data"]
    await installer.install(LOCAL, force=True)
    assert "python:3.11-slim" in (await client.get(CONFIG_MAP, OPERATOR.name, SYSTEM)).data["operator.yaml"]


async def test_what_kubectl_applied_is_found_unchanged_and_an_edit_of_it_is_not(
    client: Client, installer: Installer
):
    """To the server all that it fills with defaults belonged to kubectl, and --force found nothing to do about it."""
    await installer.install(LOCAL)
    for manifest in LOCAL:
        kind = kind_of(manifest)
        await client.apply(kind.raw, manifest, "kubectl", force=True)
    assert outcomes(await installer.install(LOCAL)) == {ChangeType.UNCHANGED}
    edited = {**manifest_of("ValidatingAdmissionPolicy", "devservers-secrets")}
    edited["spec"] = {**edited["spec"], "failurePolicy": "Ignore"}
    await client.apply(kind_of(edited).raw, edited, "kubectl", force=True)
    with pytest.raises(Conflict) as refused:
        await installer.install(LOCAL)
    assert refused.value.code == "devservers.edited"
    assert ChangeType.CHANGED in outcomes(await installer.install(LOCAL, force=True))
    assert outcomes(await installer.install(LOCAL)) == {ChangeType.UNCHANGED}


async def test_an_installation_that_is_just_leaving_is_not_taken_for_one_that_stands(
    client: Client, installer: Installer
):
    await installer.install(LOCAL)
    held = {"metadata": {"name": "held", "namespace": SYSTEM, "finalizers": ["example.com/a-moment"]}}
    await client.create(CONFIG_MAP, held)
    await client.delete(NAMESPACE, SYSTEM)
    with pytest.raises(Conflict) as refused:
        await installer.install(LOCAL)
    assert refused.value.code == "devservers.leaving"
    await client.patch(CONFIG_MAP, "held", LET_GO, SYSTEM)


async def test_servers_outlive_the_installation_unless_they_are_given_up(
    client: Client, installer: Installer
):
    await installer.install(LOCAL)
    server = {"metadata": {"name": "box", "namespace": "default"}, "spec": {"flavor": "cpu-small"}}
    made = await client.create(DEVSERVERS, server)
    with pytest.raises(Conflict, match=r"There are 1 servers.*default/box"):
        await installer.uninstall(purge=True)
    await installer.uninstall(patience=A_MINUTE)
    with pytest.raises(NotFound):
        await client.get(NAMESPACE, SYSTEM)
    assert (await client.get(DEVSERVERS, "box", "default")).meta.uid == made.meta.uid
    await installer.install(LOCAL)
    assert (await client.get(DEVSERVERS, "box", "default")).meta.uid == made.meta.uid
    await client.delete(DEVSERVERS, "box", "default")
    await installer.uninstall(purge=True, patience=A_MINUTE)
    with pytest.raises(UnknownKind):
        await client.list(DEVSERVERS)


async def test_an_operator_that_does_not_come_is_told(client: Client, installer: Installer):
    await installer.install(LOCAL)
    with anyio.fail_after(60):
        async with client.watch(POD, SYSTEM) as events:
            async for event in events:
                if not isinstance(event, Bookmark) and condition(
                    event.object.status.conditions, "PodScheduled"
                ):
                    break
    with pytest.raises(Deadline, match=r"not available after 1s: no nodes available"):
        await installer.wait(OPERATOR, Duration.of(seconds=1))


async def test_a_user_is_added_once_let_in_for_an_hour_and_removed(client: Client, installer: Installer):
    users = TenantManager(client)
    with pytest.raises(NotFound, match="does not know development servers"):
        await users.add("ann", UserRequest())
    await installer.install(LEAST)
    assert outcomes(await users.add("ann", UserRequest())) == {ChangeType.CREATED}
    assert outcomes(await users.add("ann", UserRequest())) == {ChangeType.UNCHANGED}
    assert outcomes(await users.add("ann", UserRequest(UserQuota(servers=2)))) == {ChangeType.CHANGED}
    await provision(client, "ann")
    (ann,) = await users.all()
    assert (ann.name, ann.namespace, ann.servers, ann.homes) == ("ann", "dev-ann", 0, 0)
    token = await users.token("ann", Duration.of(minutes=10))
    assert token.text.count(".") == 2
    with pytest.raises(Invalid, match="is not given"):
        await users.token("ann", Duration.of(hours=2))
    with pytest.raises(NotFound, match='no user "anne"') as missing:
        await users.get("anne")
    assert 'did you mean "ann"?' in missing.value.hint
    await users.remove("ann", A_MINUTE)
    with pytest.raises(NotFound):
        await client.get(NAMESPACE, "dev-ann")


async def test_a_user_who_has_something_is_not_removed_by_mistake(client: Client, users: TenantManager):
    await provision(client, "bob")
    meta = {"name": "box", "namespace": "dev-bob"}
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await client.create(CLAIM, {"metadata": meta, "spec": size})
    with pytest.raises(Conflict, match="bob has 0 servers, 0 homes and 1 other volumes"):
        await users.remove("bob", A_MINUTE)
    await client.create(DEVSERVERS, {"metadata": meta, "spec": {"flavor": "cpu-small"}})
    with pytest.raises(Conflict, match="bob has 1 servers, 0 homes and 1 other volumes"):
        await users.remove("bob", A_MINUTE)
    assert await client.get(SERVICE_ACCOUNT, "user-bob", "dev-bob")
    await users.remove("bob", A_MINUTE, with_homes=True)
    assert await users.all() == []


async def test_a_token_of_a_removed_user_does_not_let_in_who_has_the_name_next(
    client: Client, users: TenantManager
):
    await provision(client, "ann")
    token = await users.token("ann", Duration.of(minutes=10))
    known = structs.replace(client.transport.cluster, certificate=None, source=StaticToken(token.text))
    async with connect(known, "test") as old:
        assert (await old.list(SERVICE, "dev-ann")).items == []
        await users.remove("ann", A_MINUTE)
        await provision(client, "ann")
        with anyio.fail_after(60), pytest.raises(Unauthenticated):
            await _ask_on(old)


async def _ask_on(client: Client) -> None:
    """A server remembers for some seconds that a token was good."""
    while True:
        await client.list(SERVICE, "dev-ann")
        await SystemClock().sleep(Duration.of(ms=200))


async def test_a_namespace_that_is_somebody_elses_is_not_taken_over(client: Client, installer: Installer):
    await installer.install(LEAST)
    await client.create(NAMESPACE, {"metadata": {"name": "dev-team"}})
    with pytest.raises(Conflict, match="not that of a user team"):
        await TenantManager(client).add("team", UserRequest())
    await client.delete(NAMESPACE, "dev-team")


@pytest.mark.parametrize("name", ["Ann", "ann.smith", "ann@example.com", "-ann", "a" * 60, "", "../x"])
async def test_a_name_that_cannot_be_a_namespace_is_refused(client: Client, name: str):
    with pytest.raises(Invalid, match="cannot be the name of a user"):
        await TenantManager(client).add(name, UserRequest())


@pytest.mark.usefixtures("anyio_backend", "installer")
def test_the_commands_do_it_from_beginning_to_end(
    own_cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def devctl(*words: str, config: Path = own_cluster.kubeconfig, expected: int = 0) -> str:
        code = run(app, [*words, "--kubeconfig", str(config), "--debug"])
        told = capsys.readouterr()
        assert code == expected, told.err
        return told.out

    assert len(json.loads(devctl("install", "--dry-run", "-o", "json"))) == len(LOCAL)
    devctl("install", "--no-wait")
    assert devctl("install", "--no-wait") == ""
    with provisioning_beside(own_cluster):
        devctl("admin", "user", "add", "eve", "-q")
    assert devctl("admin", "user", "list", "-o", "name") == "eve\n"
    token, eve = tmp_path / "token", tmp_path / "kubeconfig"
    eve.write_text(devctl("admin", "user", "kubeconfig", "eve", "--token-file", str(token)))
    assert token.stat().st_mode & 0o777 == 0o600
    assert devctl("list", "-o", "json", config=eve) == "[]\n"
    # Every right that devctl needs, and none on the cluster.
    assert "You may not create namespaces." in devctl("test-k8s", "-o", "json", config=eve)
    devctl("list", "-n", "default", config=eve, expected=4)
    devctl("admin", "user", "remove", "eve", "--yes")
    devctl("uninstall", "--purge", "--yes")
    assert devctl("uninstall", "--dry-run", "-o", "json") == "[]\n"


def test_the_committed_overlays_name_no_object_twice():
    for overlay in Overlay:
        keys = [
            (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
            for one in rendered(overlay)
        ]
        assert len(keys) == len(set(keys))
