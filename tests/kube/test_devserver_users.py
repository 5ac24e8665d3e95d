"""DevServerUsers on a real API server: provisioned with the user controller's own rights, and with no more than these."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer as LocalServer
from anyio.abc import Process

from neorion.devservers.adapters.install import carry_out, plan
from neorion.devservers.adapters.key_server import HttpKeyServer
from neorion.devservers.adapters.users import TenantManager, UserRequest
from neorion.devservers.decide.console import console_pod
from neorion.devservers.decide.tenant import tenant_manifests
from neorion.devservers.model.kube_types import USERS
from neorion.devservers.model.user import DevServerUserSpec, UserPhase
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Conflict, Deadline, Denied, Duration, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube import InvalidObject, Kind, KubeObject, MergePatch
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import CONFIG_MAP, NAMESPACE, POD, SECRET, SERVICE_ACCOUNT
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import allowed, refused
from tests.kube.user_controller import PATIENCE, administered, provisioning, until

pytestmark = pytest.mark.anyio

SYSTEM = "devservers-system"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP5MopRu2fcl ann@laptop"
_RBAC = "rbac.authorization.k8s.io"
ROLE = Kind(KubeObject, "Role", "roles", _RBAC)
BINDING = Kind(KubeObject, "RoleBinding", "rolebindings", _RBAC)


@pytest.fixture
async def admin(own_cluster: Cluster) -> AsyncGenerator[Client]:
    async with administered(own_cluster) as client:
        yield client


@pytest.fixture
def controller(admin: Client) -> Client:
    """The API with the rights of the user controller."""
    return admin.acting_as(*rows.account(SYSTEM, "devservers-user-controller"))


async def add(admin: Client, name: str, *keys: str) -> None:
    await TenantManager(admin).add(name, UserRequest(keys=keys or None))
    await TenantManager(admin).wait_provisioned(name, PATIENCE)


async def test_a_user_is_provisioned_suspended_resumed_and_removed(admin: Client, controller: Client):
    async with provisioning(controller, SYSTEM):
        await add(admin, "ann", KEY)
        space = await admin.get(NAMESPACE, "dev-ann")
        assert space.meta.labels["devserver.io/user"] == "ann"
        assert space.meta.labels["devserver.io/created-by"] == "user-controller"
        keys = await admin.get(CONFIG_MAP, "devserver-user-keys", "dev-ann")
        authority = (await admin.get(CONFIG_MAP, "devservers-bastion", SYSTEM)).data["authority.pub"].strip()
        assert keys.data["authorized_keys"] == f'cert-authority,principals="ann" {authority}\n{KEY}\n'
        ann = admin.acting_as(*rows.account("dev-ann", "user-ann"))
        await allowed(lambda: ann.list(POD, "dev-ann"))
        with pytest.raises(Denied):
            await ann.create(NAMESPACE, {"metadata": {"name": "test"}})

        first = (await admin.get(SERVICE_ACCOUNT, "user-ann", "dev-ann")).meta.uid
        await TenantManager(admin).suspend("ann", suspended=True)
        await TenantManager(admin).wait_provisioned("ann", PATIENCE)
        assert (await admin.get(USERS, "ann")).status.phase is UserPhase.SUSPENDED
        with pytest.raises(NotFound):
            await admin.get(SERVICE_ACCOUNT, "user-ann", "dev-ann")
        with pytest.raises(Denied):
            await ann.list(POD, "dev-ann")
        await TenantManager(admin).suspend("ann", suspended=False)
        await TenantManager(admin).wait_provisioned("ann", PATIENCE)
        # Tokens are bound to the account, and this is another one.
        assert (await admin.get(SERVICE_ACCOUNT, "user-ann", "dev-ann")).meta.uid != first

        await admin.delete(USERS, "ann")

        async def has_no_rights() -> bool:
            return [one.meta.name for one in (await admin.list(BINDING, "dev-ann")).items] == [
                "devservers-operator"
            ]

        await until(has_no_rights)
        # What a user leaves behind is an administrator's to delete.
        assert (await admin.get(NAMESPACE, "dev-ann")).meta.deleted is None


async def test_the_keys_of_a_users_login_are_fetched_and_open_servers(admin: Client, controller: Client):
    answers = {"/ann-h.keys": f"{KEY}\nnot a key\n"}

    async def answer(request: web.Request) -> web.Response:
        text = answers.get(request.path)
        return web.Response(text=text, status=200 if text is not None else 404)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with LocalServer(app) as server:
        keys = HttpKeyServer(str(server.make_url("/")) + "{login}.keys", SystemClock())
        async with provisioning(controller, SYSTEM, keys):
            users = TenantManager(admin)
            for github, fetched in (("ann-h", (KEY,)), ("somebody", ()), ("", ())):
                await users.add("ann", UserRequest(github=github))
                await users.wait_provisioned("ann", PATIENCE)
                ann = await admin.get(USERS, "ann")
                assert (ann.spec.github or "", ann.keys) == (github, fetched)
                lines = (await admin.get(CONFIG_MAP, "devserver-user-keys", "dev-ann")).data[
                    "authorized_keys"
                ]
                assert tuple(lines.splitlines()[1:]) == fetched


@asynccontextmanager
async def controller_process(cluster: Cluster, folder: Path) -> AsyncGenerator[Process]:
    """The user controller as a process of its own, killed at the end."""
    command = [sys.executable, "-m", "neorion.devservers", "user-controller"]
    with (folder / "user-controller.log").open("ab") as log:
        async with await anyio.open_process(
            [*command, "--kubeconfig", str(cluster.kubeconfig)], stdout=log, stderr=log
        ) as made:
            try:
                yield made
            finally:
                if made.returncode is None:
                    made.kill()


async def test_a_controller_that_is_killed_while_it_provisions_leaves_no_half_made_user(
    admin: Client, own_cluster: Cluster, tmp_path: Path
):
    names = [f"user{number}" for number in range(6)]
    async with controller_process(own_cluster, tmp_path) as first:
        for name in names:
            await admin.create(USERS, {"metadata": {"name": name}, "spec": {"keys": [KEY]}})

        async def has_begun() -> bool:
            return any(one.meta.name.startswith("dev-user") for one in (await admin.list(NAMESPACE)).items)

        await until(has_begun)
        first.kill()
        await first.wait()
    phases = [(await admin.get(USERS, name)).status.phase for name in names]
    assert UserPhase.PROVISIONED not in phases, "the kill came too late"
    async with controller_process(own_cluster, tmp_path):
        for name in names:
            await TenantManager(admin).wait_provisioned(name, PATIENCE)
            things = ["role", "rolebinding", "resourcequota", "limitrange", "networkpolicy"]
            objects = [f"{thing}/dev-user" for thing in things]
            objects += [f"serviceaccount/user-{name}", "configmap/devserver-user-keys"]
            await own_cluster.kubectl("get", "--namespace", f"dev-{name}", *objects)


async def test_rights_that_somebody_changed_are_given_anew_when_the_user_changes(
    admin: Client, controller: Client
):
    async with provisioning(controller, SYSTEM):
        await add(admin, "ann")
        await admin.patch(ROLE, "dev-user", MergePatch({"rules": []}), "dev-ann")
        await admin.delete(SERVICE_ACCOUNT, "user-ann", "dev-ann")
        await add(admin, "ann", KEY)
        assert await admin.get(SERVICE_ACCOUNT, "user-ann", "dev-ann")
        ann = admin.acting_as(*rows.account("dev-ann", "user-ann"))
        await allowed(lambda: ann.list(POD, "dev-ann"))


async def test_a_user_from_before_there_were_objects_keeps_their_rights_and_becomes_one(
    admin: Client, controller: Client
):
    old = tenant_manifests("old", DevServerUserSpec())
    space = {**old[0], "metadata": {**old[0]["metadata"], "labels": {"devserver.io/user": "old"}}}
    space["metadata"]["labels"] |= {
        "devserver.io/created-by": "devctl",
        "pod-security.kubernetes.io/enforce": "baseline",
    }
    manifests = (space, *old[1:])
    await carry_out(admin, manifests, await plan(admin, manifests, force=True), force=True)
    async with provisioning(controller, SYSTEM):
        # Seen after the other, so it has been looked at by then.
        await add(admin, "ann")
        assert await admin.get(SERVICE_ACCOUNT, "user-old", "dev-old")
        assert {one.name: one.state for one in await TenantManager(admin).all()} == {
            "ann": "Provisioned",
            "old": "Unmanaged",
        }
        await TenantManager(admin).refresh("old")
        await TenantManager(admin).wait_provisioned("old", PATIENCE)
        assert (await admin.get(USERS, "old")).status.phase is UserPhase.PROVISIONED


async def test_a_namespace_that_is_not_the_users_is_not_taken_over(admin: Client, controller: Client):
    await admin.create(NAMESPACE, {"metadata": {"name": "dev-team"}})
    await admin.create(USERS, {"metadata": {"name": "team"}, "spec": {}})
    async with provisioning(controller, SYSTEM):
        with pytest.raises(Conflict, match="exists and is not that of the user team"):
            await TenantManager(admin).wait_provisioned("team", PATIENCE)
    with pytest.raises(NotFound):
        await admin.get(SERVICE_ACCOUNT, "user-team", "dev-team")
    await admin.delete(USERS, "team")
    await admin.delete(NAMESPACE, "dev-team")


async def test_without_a_controller_it_is_said_what_to_do(admin: Client):
    await TenantManager(admin).add("late", UserRequest())
    with pytest.raises(Deadline, match="no user controller has taken it up") as told:
        await TenantManager(admin).wait_provisioned("late", Duration.of(seconds=1))
    assert "devctl install" in told.value.hint
    assert "--container user-controller" in told.value.hint


@pytest.mark.parametrize(
    ("name", "spec", "words"),
    [
        ("Ann", {}, "metadata.name"),
        ("ann.smith", {}, "a user's name has small letters"),
        ("a" * 60, {}, "59 at most"),
        ("bad", {"keys": ["rm -rf /"]}, "write a public key as one line"),
        ("bad", {"keys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}, "write a public key as one line"),
        ("bad", {"keys": [KEY, KEY]}, "Duplicate value"),
        ("bad", {"keys": [f"{KEY}{number}" for number in range(33)]}, "must have at most 32 items"),
        ("bad", {"groups": ["Wheel!"]}, "should match"),
        ("bad", {"quota": {"cpu": "-1"}}, "write an amount as Kubernetes does"),
        ("bad", {"quota": {"memory": "12GB"}}, "write an amount as Kubernetes does"),
        ("bad", {"quota": {"servers": -1}}, "greater than or equal to 0"),
        ("bad", {"github": "-ann"}, "should match"),
        ("bad", {"github": "../ann"}, "should match"),
        ("bad", {"github": "a" * 40}, "39"),
        ("bad", {"limits": {"connections": 0}}, "greater than or equal to 1"),
        ("bad", {"suspended": "yes"}, "boolean"),
    ],
)
async def test_a_user_that_cannot_be_is_refused_by_the_server(
    admin: Client, name: str, spec: dict[str, Any], words: str
):
    with pytest.raises(InvalidObject, match=words):
        await admin.create(USERS.raw, {"metadata": {"name": name}, "spec": spec})


_TO_ANN = {"kind": "ServiceAccount", "name": "user-ann", "namespace": "dev-ann"}
_DEV_USER = {"apiGroup": _RBAC, "kind": "Role", "name": "dev-user"}
_WRITES = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "devservers-operator-writes"}
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def _role(namespace: str, **rule: Any) -> dict[str, Any]:
    return {"metadata": {"name": "dev-user", "namespace": namespace}, "rules": [{**_RULE, **rule}]}


def _binding(called: str, role: Any, **subject: Any) -> dict[str, Any]:
    namespace = subject.pop("where", "dev-ann")
    meta = {"name": called, "namespace": namespace}
    return {"metadata": meta, "roleRef": role, "subjects": [{**_TO_ANN, **subject}]}


_LABELS = {"devserver.io/user": "kube-system", "pod-security.kubernetes.io/enforce": "baseline"}
ATTACKS: dict[str, tuple[Kind[Any], dict[str, Any], str]] = {
    "another namespace": (NAMESPACE, {"metadata": {"name": "kube-system", "labels": _LABELS}}, "is not one"),
    "a privileged namespace": (
        NAMESPACE,
        {
            "metadata": {
                "name": "dev-eve",
                "labels": {"devserver.io/user": "eve", "pod-security.kubernetes.io/enforce": "privileged"},
            }
        },
        "enforce the baseline",
    ),
    "a role elsewhere": (ROLE, _role("kube-system"), "only in namespaces of users"),
    "a role with everything": (ROLE, _role("dev-ann", resources=["*"]), "no wildcards"),
    "a role with rights": (ROLE, _role("dev-ann", apiGroups=[_RBAC]), "no wildcards"),
    "a user's rights for another": (
        BINDING,
        _binding("dev-user", _DEV_USER, name="user-bob", namespace="dev-bob"),
        "gives rights to user-ann",
    ),
    "the operator's rights for a user": (
        BINDING,
        _binding("devservers-operator", _WRITES),
        "gives rights to",
    ),
    "a binding elsewhere": (
        BINDING,
        _binding("dev-user", _DEV_USER, where="kube-system"),
        "only in namespaces of users",
    ),
    "another account": (
        SERVICE_ACCOUNT,
        {"metadata": {"name": "admin", "namespace": "dev-ann"}},
        "is user-ann",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_stolen_account_of_the_user_controller_gives_rights_to_nobody_else(
    admin: Client, controller: Client, attack: str
):
    async with provisioning(controller, SYSTEM):
        await add(admin, "ann")
    kind, manifest, words = ATTACKS[attack]
    await refused(
        lambda: controller.rehearsing().apply(kind.raw, manifest, "user-controller", force=True), words
    )
    # The request itself is sound: it is the guard that refuses it.
    await allowed(lambda: admin.rehearsing().apply(kind.raw, manifest, "test", force=True))


async def test_a_stolen_bastion_provisions_nobody_and_reads_nobodys_secrets(
    admin: Client, controller: Client
):
    async with provisioning(controller, SYSTEM):
        await add(admin, "ann")
    bastion = admin.acting_as(*rows.account(SYSTEM, "devservers-bastion"))
    await allowed(lambda: bastion.list(POD, "dev-ann"))
    # Its own host key it may read, which shows that the account is known.
    assert await bastion.get(SECRET, "devservers-bastion", SYSTEM)
    for denied in (
        lambda: bastion.create(USERS, {"metadata": {"name": "eve"}, "spec": {}}),
        lambda: bastion.patch(USERS, "ann", MergePatch({"spec": {"keys": [KEY]}})),
        lambda: bastion.create(NAMESPACE, {"metadata": {"name": "dev-eve"}}),
        lambda: bastion.token("user-ann", "dev-ann"),
        lambda: bastion.token("devservers-user-controller", SYSTEM),
        lambda: bastion.list(SECRET, "dev-ann"),
        lambda: bastion.list(SECRET, SYSTEM),
        lambda: bastion.create(POD.raw, rows.pod()("dev-ann")),
    ):
        with pytest.raises(Denied):
            await denied()


async def test_a_bastion_makes_the_console_of_a_user_and_no_other_pod(admin: Client, controller: Client):
    async with provisioning(controller, SYSTEM):
        await add(admin, "ann")
    bastion = admin.acting_as(*rows.account(SYSTEM, "devservers-bastion")).rehearsing()
    console = console_pod("ann", "image")
    await allowed(lambda: bastion.apply(POD.raw, console, "test"))
    for change in (
        {"metadata": {**console["metadata"], "name": "other"}},
        {"metadata": {**console["metadata"], "namespace": "kube-system"}},
    ):
        with pytest.raises(Denied):
            await bastion.apply(POD.raw, {**console, **change}, "test")
    await admin.create(SERVICE_ACCOUNT, {"metadata": {"name": "user-bob", "namespace": "dev-ann"}})
    foreign = {**console, "spec": {**console["spec"], "serviceAccountName": "user-bob"}}
    await refused(lambda: bastion.apply(POD.raw, foreign, "test"), "leave spec.serviceAccountName out")
    ann = admin.acting_as(*rows.account("dev-ann", "user-ann")).rehearsing()
    await refused(lambda: ann.create(POD.raw, console), "leave spec.serviceAccountName out")
