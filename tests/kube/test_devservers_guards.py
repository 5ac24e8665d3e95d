"""A user reaches only their namespace, whatever they send; and so does the operator, should its account be stolen.

Every attack is also made where its guard is off, and succeeds there: a row that is refused for another reason proves
nothing.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.devservers.adapters.install import Overlay, bundle, carry_out, plan
from neorion.devservers.decide.tenant import tenant_manifests
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.devservers.model.user import DevServerUserSpec, UserQuota
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Denied, NotFound
from neorion.keel.kube import InvalidObject, Kind, KubeObject, MergePatch
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import CLAIM, DEPLOYMENT, EVENT, NAMESPACE, POD, SECRET, SERVICE
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import allowed, refused
from tests.kube.new_kinds import install
from tests.kube.user_controller import provision

pytestmark = pytest.mark.anyio

GUARDED, OPEN, SYSTEM = "dev-ann", "dev-open", "devservers-system"
RIGHTS = Path(__file__).parent / "devservers_rights.txt"

REVIEW = Kind(
    dict[str, Any],
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    "authorization.k8s.io",
    namespaced=False,
)
RULES = Kind(
    dict[str, Any],
    "SelfSubjectRulesReview",
    "selfsubjectrulesreviews",
    "authorization.k8s.io",
    namespaced=False,
)
POLICIES = Kind(
    dict[str, Any],
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    "admissionregistration.k8s.io",
    namespaced=False,
)
BINDINGS = Kind(KubeObject, "RoleBinding", "rolebindings", "rbac.authorization.k8s.io")


def unguarded(manifests: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """The same rights, in a namespace that no guard knows."""
    return tuple(_moved(one) for one in manifests if one["kind"] != "ResourceQuota")


def _moved(manifest: dict[str, Any]) -> dict[str, Any]:
    body = {**manifest, "metadata": {**manifest["metadata"]}}
    if body["kind"] == "Namespace":
        body["metadata"] = {"name": OPEN}
    else:
        body["metadata"]["namespace"] = OPEN
    return body


@pytest.fixture(scope="module")
def furnished(own_cluster: Cluster) -> Cluster:
    """The installation, a user, and a second namespace in which they have the same rights and nothing is guarded."""

    async def furnish() -> None:
        async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "test") as client:
            guarded = tenant_manifests("ann", DevServerUserSpec())
            rbac, role = "rbac.authorization.k8s.io", "devservers-operator-writes"
            twin = {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "twin", "namespace": GUARDED},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "twin", "namespace": SYSTEM}],
            }
            await install(own_cluster, client, bundle(Overlay.LOCAL))
            for wanted in (guarded, unguarded(guarded), (twin,)):
                await carry_out(client, wanted, await plan(client, wanted, force=True), force=True)
            await provision(client, "ann")

    anyio.run(furnish)
    return own_cluster


@pytest.fixture
async def admin(furnished: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([furnished.kubeconfig]).cluster(), "test") as client:
        yield client


@pytest.fixture
def ann(admin: Client) -> Client:
    return admin.acting_as(*rows.account(GUARDED, "user-ann"))


@pytest.fixture
def operator(admin: Client) -> Client:
    return admin.acting_as(*rows.account(SYSTEM, "devservers-operator"))


@pytest.mark.parametrize("attack", rows.USERS)
async def test_what_a_user_tries_is_refused_and_would_work_without_the_guard(ann: Client, attack: str):
    kind, manifest, words = rows.USERS[attack]
    trying = ann.rehearsing()
    await refused(lambda: trying.create(kind.raw, manifest(GUARDED)), words)
    # The account has the same rights there: only the label of the namespace is missing.
    await allowed(lambda: trying.create(kind.raw, manifest(OPEN)))


async def test_what_a_user_may_do_is_not_in_the_guards_way(ann: Client):
    trying = ann.rehearsing()
    gpu = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    mounted: list[dict[str, Any]] = [
        {"emptyDir": {}},
        {"configMap": {"name": "mine"}},
        {"secret": {"secretName": "mine"}},
        {"persistentVolumeClaim": {"claimName": "mine"}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": rows.claim()("")["spec"]}}},
        {"downwardAPI": {}},
        {"projected": {"sources": [{"configMap": {"name": "mine"}}]}},
        {"image": {"reference": "busybox"}},
    ]
    good: list[tuple[Kind[Any], Callable[[str], dict[str, Any]]]] = [
        (POD, rows.pod()),
        (POD, rows.pod(tolerations=gpu)),
        (POD, rows.pod(volumes=[{"name": f"v{at}", **one} for at, one in enumerate(mounted)])),
        (DEPLOYMENT, rows.deployment({})),
        (SERVICE, rows.service()),
        (CLAIM, rows.claim()),
        (CLAIM, rows.claim(storageClassName="standard")),
        (DEVSERVERS, rows.server()),
        (DEVSERVERS, rows.server("ann")),
        (DEVSERVERS, rows.server("Ann@example.com")),
        (DEVSERVERS, rows.server(rows.account(GUARDED, "user-ann")[0])),
    ]
    for kind, manifest in good:
        await allowed(lambda kind=kind, manifest=manifest: trying.create(kind.raw, manifest(GUARDED)))


@pytest.mark.parametrize("namespace", [GUARDED, OPEN])
async def test_a_claim_is_not_bound_to_a_volume_afterwards(ann: Client, namespace: str):
    made = await allowed(lambda: ann.create(CLAIM, rows.claim(storageClassName="none-such")(namespace)))

    async def bind() -> None:
        await ann.patch(CLAIM, made.meta.name, MergePatch({"spec": {"volumeName": "home-of-bob"}}), namespace)

    try:
        if namespace == GUARDED:
            await refused(bind, "leave spec.volumeName out")
        else:
            await allowed(bind)
    finally:
        await ann.delete(CLAIM, made.meta.name, namespace)


@pytest.mark.parametrize("way", rows.TEMPLATES)
async def test_a_claim_that_a_controller_makes_names_no_volume_either(admin: Client, ann: Client, way: str):
    kind, manifest, claim = rows.TEMPLATES[way]

    async def told() -> None:
        notes = [one.note for one in (await admin.list(EVENT, GUARDED)).items if claim in one.note]
        if not any("leave spec.volumeName out" in note for note in notes):
            raise InvalidObject("not told yet")

    await allowed(lambda: ann.create(kind.raw, manifest(GUARDED)))
    await allowed(lambda: ann.create(kind.raw, manifest(OPEN)))
    assert (await allowed(lambda: admin.get(CLAIM, claim, OPEN))).spec.volume_name == "home-of-bob"
    await allowed(told)
    with pytest.raises(NotFound):
        await admin.get(CLAIM, claim, GUARDED)
    await ann.delete(kind, "attack", GUARDED)
    await ann.delete(kind, "attack", OPEN)


async def test_a_claim_is_not_filled_from_another_namespace(furnished: Cluster, ann: Client):
    trying = ann.rehearsing()

    async def source(namespace: str) -> dict[str, Any] | None:
        made: dict[str, Any] = await allowed(lambda: trying.create(CLAIM.raw, rows.CLONE(namespace)))
        return made["spec"].get("dataSourceRef")

    # As servers come, they do not know what is asked for.
    assert await source(GUARDED) is None
    assert await source(OPEN) is None
    _, server, *_ = furnished.control_plane()
    knowing = "--feature-gates=CrossNamespaceVolumeDataSource=true"
    await furnished.ensure(replace(server, argv=(*server.argv, knowing)))
    try:
        await refused(
            lambda: trying.create(CLAIM.raw, rows.CLONE(GUARDED)), "leave spec.dataSourceRef.namespace out"
        )
        found = await source(OPEN)
        assert found is not None
        assert found["namespace"] == "dev-bob"
    finally:
        await furnished.start_control_plane()


@pytest.mark.parametrize("namespace", [GUARDED, OPEN])
async def test_what_a_server_is_made_of_is_changed_by_its_operator_alone(
    admin: Client, ann: Client, namespace: str
):
    """Whoever could write the marked Deployment could give its pods any toleration."""
    operator = admin.acting_as(*rows.account(SYSTEM, "devservers-operator"))
    maker = operator if namespace == GUARDED else admin
    server = await allowed(lambda: ann.create(DEVSERVERS, rows.server()(namespace)))
    owner = {**rows.OWNER, "name": server.meta.name, "uid": server.meta.uid}
    body = rows.deployment({rows.SERVER: "box"})(namespace)
    body["metadata"] |= {"labels": {rows.SERVER: "box"}, "ownerReferences": [owner], "name": "box"}
    await allowed(lambda: maker.create(DEPLOYMENT.raw, body))
    everything = {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}

    async def change() -> None:
        await ann.rehearsing().patch(DEPLOYMENT, "box", MergePatch(everything), namespace)

    async def unmark() -> None:
        unmarked = MergePatch({"metadata": {"labels": {rows.SERVER: None}}})
        await ann.rehearsing().patch(DEPLOYMENT, "box", unmarked, namespace)

    for attack in (change, unmark):
        if namespace == GUARDED:
            await refused(attack, "the operator's;")
        else:
            await allowed(attack)
    await ann.delete(DEPLOYMENT, "box", namespace)
    await ann.delete(DEVSERVERS, server.meta.name, namespace)


async def test_a_users_status_and_finalizer_are_the_operators(ann: Client, operator: Client):
    made = await allowed(lambda: ann.create(DEVSERVERS, rows.server()(GUARDED)))
    name, ready = made.meta.name, MergePatch({"status": {"ready": True}})
    with pytest.raises(Denied, match="devservers/status"):
        await ann.patch(DEVSERVERS, name, ready, GUARDED, "status")
    assert (await operator.patch(DEVSERVERS, name, ready, GUARDED, "status")).status.ready
    await operator.patch(
        DEVSERVERS, name, MergePatch({"metadata": {"finalizers": ["devservers.io/home"]}}), GUARDED
    )
    none = MergePatch({"metadata": {"finalizers": []}})
    await refused(
        lambda: ann.patch(DEVSERVERS, name, none, GUARDED), "takes its finalizer away when the home is safe"
    )
    await operator.patch(DEVSERVERS, name, none, GUARDED)
    await ann.delete(DEVSERVERS, name, GUARDED)


async def test_who_may_assign_servers_names_their_owner_and_nobody_renames_them(admin: Client, ann: Client):
    server = rows.server("bob")
    await refused(lambda: ann.rehearsing().create(DEVSERVERS.raw, server(GUARDED)), "those of ann")
    made = await allowed(lambda: admin.create(DEVSERVERS, server(GUARDED)))
    stopped = await ann.patch(DEVSERVERS, made.meta.name, MergePatch({"spec": {"running": False}}), GUARDED)
    assert stopped.spec.owner == "bob"
    await ann.delete(DEVSERVERS, made.meta.name, GUARDED)
    made = await allowed(lambda: ann.create(DEVSERVERS, rows.server(name="later")(GUARDED)))
    late = MergePatch({"spec": {"owner": "bob"}})
    await refused(lambda: ann.patch(DEVSERVERS, made.meta.name, late, GUARDED), "those of ann")
    await ann.delete(DEVSERVERS, made.meta.name, GUARDED)


@pytest.mark.parametrize("attack", rows.OPERATOR)
async def test_a_stolen_account_of_the_operator_makes_nothing_of_its_own(
    admin: Client, operator: Client, attack: str
):
    kind, manifest, words = rows.OPERATOR[attack]
    await refused(lambda: operator.rehearsing().create(kind.raw, manifest(GUARDED)), words)
    twin = admin.acting_as(*rows.account(SYSTEM, "twin")).rehearsing()
    await allowed(lambda: twin.create(kind.raw, manifest(GUARDED)))


async def test_the_operator_writes_only_where_users_live(admin: Client, operator: Client):
    """In the other namespace it has the same rights; a guard is what stops it."""
    service = rows.service(rows.OWNER)
    await allowed(lambda: operator.rehearsing().create(SERVICE.raw, service(GUARDED)))
    await refused(
        lambda: operator.rehearsing().create(SERVICE.raw, service(OPEN)),
        f"{OPEN} is none; devctl admin user add",
    )
    with pytest.raises(Denied, match="cannot create resource"):
        await operator.rehearsing().create(SERVICE.raw, service("default"))
    assert await admin.rehearsing().create(SERVICE.raw, service("default"))


async def test_the_operator_takes_over_nothing_that_a_user_made(ann: Client, operator: Client):
    await allowed(lambda: ann.create(SERVICE.raw, rows.service()(GUARDED)))
    mine = SERVICE.manifest(rows.service(rows.OWNER)(GUARDED))
    await refused(
        lambda: operator.apply(SERVICE.raw, mine, "devservers", force=True),
        "the operator writes only what belongs to a DevServer",
    )
    await ann.delete(SERVICE, "attack", GUARDED)


async def test_the_operator_deletes_nothing_that_a_user_made(admin: Client, ann: Client, operator: Client):
    await allowed(lambda: ann.create(SECRET.raw, rows.thing(GUARDED, {})))
    await allowed(lambda: ann.create(CLAIM.raw, rows.claim(storageClassName="none-such")(GUARDED)))
    twin = admin.acting_as(*rows.account(SYSTEM, "twin")).rehearsing()
    for kind in (SECRET, CLAIM):
        await refused(
            lambda kind=kind: operator.delete(kind, "attack", GUARDED),
            "the operator writes only what belongs to a DevServer",
        )
        await allowed(lambda kind=kind: twin.delete(kind, "attack", GUARDED))
        await ann.delete(kind, "attack", GUARDED)


async def test_servers_are_counted_and_one_too_many_is_refused(admin: Client, ann: Client):
    await provision(admin, "few", UserQuota(servers=1))
    user = admin.acting_as(*rows.account("dev-few", "user-few"))
    await allowed(lambda: user.create(DEVSERVERS, rows.server()("dev-few")))
    second = {"metadata": {"name": "second", "namespace": "dev-few"}, "spec": {"flavor": "cpu-small"}}
    await refused(lambda: user.rehearsing().create(DEVSERVERS, second), "exceeded quota")
    second["metadata"]["namespace"] = GUARDED
    await allowed(lambda: ann.rehearsing().create(DEVSERVERS, second))


async def may(client: Client, right: tuple[str, str, str, str], namespace: str) -> bool:
    verb, group, resource, subresource = right
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    body = {"spec": {"resourceAttributes": {**asked, "namespace": namespace}}}
    return bool((await client.create(REVIEW, body))["status"]["allowed"])


@pytest.mark.parametrize("right", rows.NOBODY, ids=lambda right: " ".join(filter(None, right)))
async def test_what_leads_out_of_a_namespace_is_nobodys_right(
    admin: Client, ann: Client, operator: Client, right: tuple[str, str, str, str]
):
    assert await may(admin, right, "")
    for place in ("", "default", SYSTEM, "kube-system"):
        assert not await may(ann, right, place)
        assert not await may(operator, right, place)


async def _rights(client: Client, namespace: str) -> Iterator[str]:
    status = (await client.create(RULES, {"spec": {"namespace": namespace}}))["status"]
    assert not status["incomplete"]
    told = {
        f"{group or 'core'}/{resource}{_only(rule)}: {' '.join(sorted(rule['verbs']))}"
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    # What everybody may ask about themselves says nothing of these two.
    return iter(sorted(line for line in told if not line.startswith(("authorization.", "authentication."))))


def _only(rule: dict[str, Any]) -> str:
    names = rule.get("resourceNames")
    return f" ({', '.join(names)})" if names else ""


async def test_the_rights_of_every_account_are_those_of_the_committed_list(
    admin: Client, ann: Client, operator: Client
):
    lines: list[str] = []
    bastion = admin.acting_as(*rows.account(SYSTEM, "devservers-bastion"))
    controller = admin.acting_as(*rows.account(SYSTEM, "devservers-user-controller"))
    accounts = {"user": ann, "operator": operator, "bastion": bastion, "user controller": controller}
    for who, client in accounts.items():
        for place in (GUARDED, SYSTEM, "default"):
            lines += [f"{who} in {place}", *(f"  {line}" for line in await _rights(client, place)), ""]
    assert "\n".join(lines) == RIGHTS.read_text()


async def test_the_guards_understand_what_they_guard(admin: Client):
    """The server checks every expression against the kinds it is about; a warning is a field that is not there."""

    async def checked() -> list[dict[str, Any]]:
        found = (await admin.list(POLICIES)).items
        if any(one["status"].get("observedGeneration") != one["metadata"]["generation"] for one in found):
            raise InvalidObject("not checked yet")
        return list(found)

    policies = await allowed(checked)
    assert len(policies) == 15
    assert [one["metadata"]["name"] for one in policies if one["status"].get("typeChecking")] == []


async def test_every_guard_denies_and_is_there_when_its_judgement_fails(admin: Client):
    bindings = Kind(
        dict[str, Any],
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        "admissionregistration.k8s.io",
        namespaced=False,
    )
    bound = {one["spec"]["policyName"]: one["spec"] for one in (await admin.list(bindings)).items}
    policies = {one["metadata"]["name"]: one["spec"] for one in (await admin.list(POLICIES)).items}
    assert bound.keys() == policies.keys()
    assert {tuple(one["validationActions"]) for one in bound.values()} == {("Deny",)}
    assert {one["failurePolicy"] for one in policies.values()} == {"Fail"}
    assert (await admin.get(NAMESPACE, GUARDED)).meta.labels["devserver.io/user"] == "ann"
