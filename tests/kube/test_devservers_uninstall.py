"""Who takes an installation away opens nothing to its users."""

from collections.abc import AsyncGenerator

import pytest

from neorion.devservers.adapters.install import GUARDS, KINDS, PART_OF, Installer, Overlay, bundle
from neorion.devservers.adapters.users import TenantManager, UserRequest
from neorion.devservers.cli import app
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Conflict, Duration, NotFound
from neorion.keel.cli import run
from neorion.keel.kube import Selector
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import NAMESPACE
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import refused
from tests.kube.new_kinds import install
from tests.kube.user_controller import provision, provisioning_beside

pytestmark = pytest.mark.anyio

LOCAL = bundle(Overlay.LOCAL)
NOT_A_NODES = "the scheduler chooses the node"
A_MINUTE = Duration.of(minutes=1)


@pytest.fixture
async def client(own_cluster: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "test") as made:
        yield made


async def guards(client: Client) -> set[str]:
    kinds = [kind for kind in KINDS if kind.name in GUARDS]
    found = [await client.list(kind, select=Selector(labels=PART_OF)) for kind in kinds]
    return {
        f"{kind.name} {one.meta.name}"
        for kind, listed in zip(kinds, found, strict=True)
        for one in listed.items
    }


async def test_users_are_held_by_the_guards_until_the_last_of_them_is_gone(
    own_cluster: Cluster, client: Client
):
    installer, users = Installer(client), TenantManager(client)
    await install(own_cluster, client, LOCAL)
    await provision(client, "ann")
    all_guards = await guards(client)
    ann = client.acting_as(*rows.account("dev-ann", "user-ann")).rehearsing()
    on_a_node = rows.pod(nodeName="node1")("dev-ann")
    for purge in (False, True):
        await installer.uninstall(purge=purge, patience=A_MINUTE)
        with pytest.raises(NotFound):
            await client.get(NAMESPACE, "devservers-system")
        assert await guards(client) == all_guards
        await refused(lambda: ann.create(rows.POD.raw, on_a_node), NOT_A_NODES)
    await users.remove("ann", A_MINUTE)
    await installer.uninstall(purge=True, patience=A_MINUTE)
    assert await guards(client) == set()


async def test_nobody_is_given_rights_where_nothing_holds_them(client: Client):
    installer, users = Installer(client), TenantManager(client)
    await installer.install(LOCAL)
    await installer.uninstall(patience=A_MINUTE)
    with pytest.raises(Conflict) as unguarded:
        await users.add("bob", UserRequest())
    assert unguarded.value.code == "devservers.unguarded"
    with pytest.raises(NotFound):
        await client.get(NAMESPACE, "dev-bob")
    await installer.uninstall(purge=True, patience=A_MINUTE)


@pytest.mark.usefixtures("anyio_backend")
def test_who_uninstalls_is_told_for_whom_the_guards_stay(
    own_cluster: Cluster, capsys: pytest.CaptureFixture[str]
):
    def devctl(*words: str) -> str:
        code = run(app, [*words, "--kubeconfig", str(own_cluster.kubeconfig), "--debug"])
        told = capsys.readouterr()
        assert code == 0, told.err
        return told.err

    devctl("install", "--no-wait")
    with provisioning_beside(own_cluster):
        devctl("admin", "user", "add", "eve")
    assert "The guards stay, for users keep their rights: eve." in devctl("uninstall", "--dry-run")
    assert "The guards stay, for users keep their rights: eve." in devctl("uninstall", "--yes")
    devctl("admin", "user", "remove", "eve", "--yes")
    assert "guards" not in devctl("uninstall", "--purge", "--yes")
