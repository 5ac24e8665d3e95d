"""Kueue under another name: the guards let through whom the installation names, and nobody else."""

import os
from collections.abc import Generator

import anyio
import pytest

from neorion.devservers.adapters.install import Overlay, bundle
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.keel.kube import JsonPatch, Kind, KubeObject
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import POD
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import allowed, refused
from tests.kube.new_kinds import install
from tests.kube.user_controller import provision

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(300)]

NS = "dev-ann"
MANAGED = "kueue.x-k8s.io/managed"
RIGHTS = "rbac.authorization.k8s.io"
OURS = ("kueue-system", "kueue-controller-manager")
THEIRS = ("batch", "queues")
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch", "update"]}]
TOLERANT = JsonPatch(
    ({"op": "add", "path": "/spec/tolerations/-", "value": {"key": "team", "operator": "Exists"}},)
)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """A control plane of its own: guards are the whole cluster's."""
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("named"))})
    try:
        yield anyio.run(yard.up, "named", ClusterOptions())
    finally:
        anyio.run(yard.down, "named")


async def give_rights(admin: Client, namespace: str, name: str) -> None:
    role = {"apiGroup": RIGHTS, "kind": "ClusterRole", "name": namespace}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    for kind, plural, body in (
        ("ClusterRole", "clusterroles", {"rules": RULES}),
        ("ClusterRoleBinding", "clusterrolebindings", {"roleRef": role, "subjects": [subject]}),
    ):
        known = Kind(KubeObject, kind, plural, RIGHTS, namespaced=False).raw
        await admin.apply(known, {"metadata": {"name": namespace}, **body}, "test")


async def test_kueue_in_another_namespace_is_let_through_where_the_installation_names_it(named: Cluster):
    """What Kueue does is done here in its name: its own finalizer on a user's pod, and a flavor's toleration."""
    async with connect(read_kubeconfig([named.kubeconfig]).cluster(), "test") as admin:
        await install(named, admin, bundle(Overlay.LOCAL, kueue="/".join(THEIRS)))
        await provision(admin, "ann")
        await give_rights(admin, *OURS)
        ann = admin.acting_as(*rows.account(NS, "user-ann"))
        body = rows.pod()(NS)
        body["metadata"] |= {"finalizers": [MANAGED], "labels": {MANAGED: "true"}}
        # Whom the guards know as Kueue has no rights yet, and so nobody would take the finalizer away. Rehearsed: before
        # the guards are heard of, it would be made.
        await refused(lambda: ann.rehearsing().create(POD.raw, body), "users add no finalizers")
        await give_rights(admin, *THEIRS)
        await allowed(lambda: ann.create(POD.raw, body))
        stranger, queues = (admin.acting_as(*rows.account(*one)) for one in (OURS, THEIRS))
        await refused(
            lambda: stranger.rehearsing().patch(POD, "attack", TOLERANT, NS), "pods may only tolerate"
        )
        await allowed(lambda: queues.patch(POD, "attack", TOLERANT, NS))
