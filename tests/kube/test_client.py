"""What only a real server can show: rights, quotas, budgets, schemas, pages, tokens, scales."""

from contextlib import suppress

import anyio
import pytest
from msgspec import structs

from neorion.keel.base import Denied, Duration, Invalid, NotFound, QuotaExceeded, Retry
from neorion.keel.clock import SystemClock
from neorion.keel.kube import (
    InvalidObject,
    Kind,
    KubeObject,
    KubeStruct,
    ObjectMeta,
    StrategicMergePatch,
    UnknownKind,
)
from neorion.keel.kube.client import Client, StaticToken, connect
from neorion.keel.kube.client import api as client_api
from neorion.keel.kube.core import (
    CONFIG_MAP,
    DEPLOYMENT,
    POD,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE_ACCOUNT,
    Secret,
    ServiceAccount,
)
from tests.contracts.kube_api import PATIENCE_S, WIDGET, WatchEnded, config, take, take_initial, widget

pytestmark = pytest.mark.anyio


class BudgetStatus(KubeStruct, frozen=True):
    observed_generation: int = 0
    current_healthy: int = 0


class Budget(KubeObject, frozen=True):
    status: BudgetStatus = BudgetStatus()


BUDGET = Kind(Budget, "PodDisruptionBudget", "poddisruptionbudgets", "policy")


def pod(namespace: str, name: str) -> dict[str, object]:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }


async def test_a_kind_that_is_not_installed_is_not_an_object_that_is_missing(
    api: Client, kube_namespace: str
):
    gone = Kind(KubeObject, "Gone", "gones", "contract.neorion.dev")
    for call in (
        api.get(gone, "a", kube_namespace),
        api.list(gone),
        api.list(structs.replace(WIDGET, version="v9")),
    ):
        with pytest.raises(UnknownKind):
            await call
    with pytest.raises(NotFound) as missing:
        await api.get(WIDGET, "a", kube_namespace)
    assert missing.value.code == "kube.not_found"


async def test_an_object_against_its_schema_is_refused_with_the_place(api: Client, kube_namespace: str):
    with pytest.raises(InvalidObject) as refused:
        await api.create(WIDGET, widget(kube_namespace, "w", size=1_000))
    assert [cause.field for cause in refused.value.causes] == ["spec.size"]
    with pytest.raises(Invalid):
        await api.create(CONFIG_MAP, config(kube_namespace, "Not A Name"))


async def test_a_rehearsed_write_is_checked_answered_and_not_kept(api: Client, kube_namespace: str):
    rehearsal = api.rehearsing()
    with pytest.raises(InvalidObject):
        await rehearsal.create(WIDGET, widget(kube_namespace, "w", size=1_000))
    made = await rehearsal.create(CONFIG_MAP, config(kube_namespace, "never", a="1"))
    assert (made.data, bool(made.meta.uid)) == ({"a": "1"}, True)
    with pytest.raises(NotFound):
        await rehearsal.get(CONFIG_MAP, "never", kube_namespace)
    await api.create(CONFIG_MAP, config(kube_namespace, "kept", a="1"))
    await rehearsal.apply(CONFIG_MAP, config(kube_namespace, "kept", a="2"), "test", force=True)
    await rehearsal.acting_as("system:admin", ["system:masters"]).delete(CONFIG_MAP, "kept", kube_namespace)
    assert (await api.get(CONFIG_MAP, "kept", kube_namespace)).data == {"a": "1"}


async def test_a_list_of_many_pages_is_one_list(
    api: Client, kube_namespace: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client_api, "PAGE", 3)
    names = {f"c-{number}" for number in range(10)}
    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(api.create, CONFIG_MAP, config(kube_namespace, name))
    listed = await api.list(CONFIG_MAP, kube_namespace)
    found = [one.meta.name for one in listed.items]
    assert len(found) == len(set(found))
    assert names <= set(found)


async def test_a_watch_of_many_objects_begins_with_all_of_them(api: Client, kube_namespace: str):
    async with anyio.create_task_group() as group:
        for number in range(200):
            group.start_soon(api.create, WIDGET, widget(kube_namespace, f"w-{number}", colour="x" * 1_000))
    seen: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        while not seen:
            # A server ends a watch whose list is overtaken by changes; the next one finds them in the list.
            with suppress(WatchEnded):
                async with api.watch(WIDGET, kube_namespace) as events:
                    seen = await take_initial(events)
    assert len(seen) == 200


async def test_an_object_larger_than_any_buffer_comes_whole_through_a_watch(api: Client, kube_namespace: str):
    since = (await api.list(CONFIG_MAP, kube_namespace)).version
    text = "ü" * 400_000
    async with api.watch(CONFIG_MAP, kube_namespace, since=since) as events:
        await api.create(CONFIG_MAP, config(kube_namespace, "large", text=text))
        (seen,) = await take(events, 1)
    assert seen.object.data == {"text": text}  # pyright: ignore[reportAttributeAccessIssue] -- no bookmark


async def test_rights_are_those_of_whom_one_acts_as(api: Client, kube_namespace: str):
    account = f"system:serviceaccount:{kube_namespace}:nobody"
    with pytest.raises(Denied) as refused:
        await api.acting_as(account).list(SECRET, kube_namespace)
    assert refused.value.code == "kube.denied"
    assert account in str(refused.value)


async def test_a_service_accounts_token_is_that_account(api: Client, kube_namespace: str):
    await api.create(SERVICE_ACCOUNT, ServiceAccount(ObjectMeta(name="ann", namespace=kube_namespace)))
    token = await api.token("ann", kube_namespace)
    target = structs.replace(api.transport.cluster, certificate=None, source=StaticToken(token.text))
    async with connect(target) as ann:
        with pytest.raises(Denied) as refused:
            await ann.list(SECRET, kube_namespace)
    assert f"system:serviceaccount:{kube_namespace}:ann" in str(refused.value)


async def test_a_secret_is_written_as_text_and_read_as_bytes(api: Client, kube_namespace: str):
    made = await api.create(
        SECRET, Secret(ObjectMeta(name="s", namespace=kube_namespace), string_data={"password": "hunter2"})
    )
    assert made.value("password") == b"hunter2"


async def test_an_exhausted_quota_is_told_as_one(api: Client, kube_namespace: str):
    quota = {"metadata": {"name": "q", "namespace": kube_namespace}, "spec": {"hard": {"count/secrets": "0"}}}
    await api.create(RESOURCE_QUOTA, quota)

    async def keep_trying() -> None:
        """A server heeds a new quota in its own time: first not at all, then as one that nobody has counted for yet."""
        rehearsal = api.rehearsing()
        while True:
            with suppress(Denied):
                await rehearsal.create(SECRET, Secret(ObjectMeta(name="s", namespace=kube_namespace)))
            await SystemClock().sleep(Duration.of(ms=50))

    with anyio.fail_after(60), pytest.raises(QuotaExceeded):
        await keep_trying()


async def test_a_deployment_is_scaled_also_to_nothing(api: Client, kube_namespace: str):
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.apply(DEPLOYMENT, {"metadata": {"name": "d", "namespace": kube_namespace}, "spec": spec}, "me")
    for replicas in (2, 0):
        await api.scale(DEPLOYMENT, "d", replicas, kube_namespace)
        assert (await api.get(DEPLOYMENT, "d", kube_namespace)).spec.replicas == replicas


async def test_a_strategic_patch_merges_lists_by_their_keys(api: Client, kube_namespace: str):
    made = await api.create(POD, pod(kube_namespace, "p"))
    body = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    after = await api.patch(POD, "p", StrategicMergePatch(body), kube_namespace)
    assert [(one.name, one.image) for one in after.spec.containers] == [("main", "other")]
    assert len(made.spec.tolerations) == len(after.spec.tolerations) == 2


async def test_an_eviction_heeds_the_disruption_budget(api: Client, kube_namespace: str):
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}
    await api.create(POD, pod(kube_namespace, "p"))
    # No kubelet runs here to say so.
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(POD, "p", StrategicMergePatch({"status": ready}), kube_namespace, "status")
    await api.create(BUDGET, {"metadata": {"name": "b", "namespace": kube_namespace}, "spec": spec})
    with anyio.fail_after(60):
        async with api.watch(BUDGET, kube_namespace) as events:
            async for event in events:
                seen = getattr(event, "object", None)
                if seen is not None and seen.status.current_healthy == 1:
                    break
    with pytest.raises(Retry) as refused:
        await api.evict("p", kube_namespace)
    assert refused.value.code == "kube.disruption_budget"
    await api.delete(BUDGET, "b", kube_namespace)
    with anyio.fail_after(60):
        while True:
            try:
                await api.evict("p", kube_namespace)
                break
            except Retry:
                continue
    assert (await api.list(POD, kube_namespace)).items == [] or (
        await api.get(POD, "p", kube_namespace)
    ).meta.deleted
