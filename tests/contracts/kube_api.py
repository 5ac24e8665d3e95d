"""What every Kubernetes API behind the port promises: the real server, and the double that must not lie.

A subclass gives the fixtures `api` and `namespace`; the kind WIDGET is installed, with a status subresource.
"""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from neorion.keel.base import Conflict, Invalid, NotFound
from neorion.keel.kube import (
    Added,
    AlreadyExists,
    Bookmark,
    Deleted,
    DeleteOptions,
    JsonPatch,
    Kind,
    KubeApi,
    KubeObject,
    KubeStruct,
    MergePatch,
    Modified,
    ObjectMeta,
    Selector,
    WatchEvent,
)
from neorion.keel.kube.core import CONFIG_MAP, LEASE, NAMESPACE, ConfigMap, Lease, LeaseSpec

# A promise that is not kept shows as a wait; this is when it is called broken.
PATIENCE_S = 120


class WidgetSpec(KubeStruct, frozen=True):
    size: int | None = None
    colour: str = ""


class WidgetStatus(KubeStruct, frozen=True):
    ready: int | None = None


class Widget(KubeObject, frozen=True):
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus = WidgetStatus()


WIDGET = Kind(Widget, "Widget", "widgets", "contract.neorion.dev")


def config(namespace: str, name: str, labels: dict[str, str] | None = None, **data: str) -> ConfigMap:
    return ConfigMap(ObjectMeta(name=name, namespace=namespace, labels=labels or {}), data)


def widget(namespace: str, name: str, **spec: Any) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


async def take(events: AsyncIterator[WatchEvent[Any]], count: int) -> list[WatchEvent[Any]]:
    """The next changes, without the bookmarks between them."""
    found: list[WatchEvent[Any]] = []
    with anyio.fail_after(PATIENCE_S):
        async for event in events:
            if not isinstance(event, Bookmark):
                found.append(event)
            if len(found) == count:
                break
    return found


class WatchEnded(Exception):
    """The server ended a watch before its list was whole, as it may with one that it is ahead of."""


async def take_initial(events: AsyncIterator[WatchEvent[Any]]) -> list[str]:
    """The names of what was there when the watch began."""
    names: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        async for event in events:
            if isinstance(event, Bookmark):
                if event.initial_done:
                    return sorted(names)
                continue
            assert isinstance(event, Added)
            names.append(event.object.meta.name)
    raise WatchEnded


class ReadingAndWriting:
    async def test_what_is_created_is_got_with_an_identity(self, api: KubeApi, namespace: str):
        made = await api.create(CONFIG_MAP, config(namespace, "a", colour="blue"))
        assert made.meta.uid
        assert made.meta.resource_version
        assert made.meta.created
        assert await api.get(CONFIG_MAP, "a", namespace) == made
        assert made.data == {"colour": "blue"}

    async def test_what_is_not_there_is_not_found(self, api: KubeApi, namespace: str):
        for call in (
            api.get(CONFIG_MAP, "nobody", namespace),
            api.patch(CONFIG_MAP, "nobody", MergePatch({"data": {}}), namespace),
            api.delete(CONFIG_MAP, "nobody", namespace),
        ):
            with pytest.raises(NotFound) as missing:
                await call
            assert missing.value.code == "kube.not_found"

    async def test_nothing_is_no_name_and_means_no_object_let_alone_all(self, api: KubeApi, namespace: str):
        made = await api.create(CONFIG_MAP, config(namespace, "a"))
        for call in (
            api.get(CONFIG_MAP, "", namespace),
            api.patch(CONFIG_MAP, "", MergePatch({"data": {}}), namespace),
            api.delete(CONFIG_MAP, "", namespace),
        ):
            with pytest.raises(Invalid) as refused:
                await call
            assert refused.value.code == "kube.name"
        assert await api.get(CONFIG_MAP, "a", namespace) == made

    async def test_a_name_is_given_once(self, api: KubeApi, namespace: str):
        await api.create(CONFIG_MAP, config(namespace, "a"))
        with pytest.raises(AlreadyExists):
            await api.create(CONFIG_MAP, config(namespace, "a"))

    async def test_the_server_makes_names_that_differ(self, api: KubeApi, namespace: str):
        thing = ConfigMap(ObjectMeta(generate_name="many-", namespace=namespace))
        names = {(await api.create(CONFIG_MAP, thing)).meta.name for _ in range(3)}
        assert len(names) == 3
        assert all(name.startswith("many-") for name in names)

    async def test_a_namespaced_object_needs_its_namespace(self, api: KubeApi):
        for call in (api.get(CONFIG_MAP, "a"), api.create(CONFIG_MAP, config("", "a"))):
            with pytest.raises(Invalid) as refused:
                await call
            assert refused.value.code == "kube.namespace"

    async def test_a_cluster_wide_object_has_none(self, api: KubeApi, namespace: str):
        assert (await api.get(NAMESPACE, namespace)).meta.namespace == ""
        with pytest.raises(Invalid) as refused:
            await api.get(NAMESPACE, namespace, namespace)
        assert refused.value.code == "kube.cluster_wide"

    async def test_a_list_holds_the_selected_objects_of_its_namespace(self, api: KubeApi, namespace: str):
        for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
            await api.create(CONFIG_MAP, config(namespace, name, {"tier": tier}))
        listed = await api.list(CONFIG_MAP, namespace, Selector(labels="tier=front"))
        assert sorted(one.meta.name for one in listed.items) == ["a", "c"]
        assert listed.version
        everywhere = await api.list(CONFIG_MAP, select=Selector(labels="tier in (front,back)"))
        assert {"a", "b", "c"} <= {one.meta.name for one in everywhere.items}
        one = await api.list(CONFIG_MAP, namespace, Selector(fields="metadata.name=b"))
        assert [found.meta.name for found in one.items] == ["b"]

    async def test_an_object_read_before_the_last_write_is_not_written_back(
        self, api: KubeApi, namespace: str
    ):
        lease = Lease(ObjectMeta(name="l", namespace=namespace), LeaseSpec(holder_identity="me"))
        first = await api.create(LEASE, lease)
        second = await api.replace(LEASE, Lease(first.meta, LeaseSpec(holder_identity="you")))
        assert second.spec.holder_identity == "you"
        assert second.meta.resource_version != first.meta.resource_version
        with pytest.raises(Conflict) as late:
            await api.replace(LEASE, Lease(first.meta, LeaseSpec(holder_identity="me again")))
        assert late.value.code == "kube.conflict"

    async def test_an_object_read_in_part_is_not_written_back_whole(self, api: KubeApi, namespace: str):
        made = await api.create(WIDGET, widget(namespace, "w", size=1))
        with pytest.raises(Invalid) as refused:
            await api.replace(WIDGET, made)
        assert refused.value.code == "kube.partial"
        raw = await api.get(WIDGET.raw, "w", namespace)
        assert (await api.replace(WIDGET, raw | {"spec": {"size": 2}})).spec.size == 2

    async def test_a_merge_patch_changes_removes_and_keeps(self, api: KubeApi, namespace: str):
        await api.create(CONFIG_MAP, config(namespace, "a", one="1", two="2", three="3"))
        body = {"data": {"one": "uno", "two": None}}
        assert (await api.patch(CONFIG_MAP, "a", MergePatch(body), namespace)).data == {
            "one": "uno",
            "three": "3",
        }

    async def test_a_json_patch_is_applied_whole_or_not_at_all(self, api: KubeApi, namespace: str):
        await api.create(CONFIG_MAP, config(namespace, "a", one="1"))
        good = JsonPatch([{"op": "add", "path": "/data/two", "value": "2"}])
        assert (await api.patch(CONFIG_MAP, "a", good, namespace)).data == {"one": "1", "two": "2"}
        bad = JsonPatch(
            [
                {"op": "add", "path": "/data/three", "value": "3"},
                {"op": "test", "path": "/data/one", "value": "another"},
            ]
        )
        with pytest.raises(Invalid):
            await api.patch(CONFIG_MAP, "a", bad, namespace)
        assert (await api.get(CONFIG_MAP, "a", namespace)).data == {"one": "1", "two": "2"}

    async def test_a_patch_with_an_old_version_conflicts(self, api: KubeApi, namespace: str):
        made = await api.create(CONFIG_MAP, config(namespace, "a", one="1"))
        await api.patch(CONFIG_MAP, "a", MergePatch({"data": {"one": "2"}}), namespace)
        body = {"metadata": {"resourceVersion": made.meta.resource_version}, "data": {"one": "3"}}
        with pytest.raises(Conflict):
            await api.patch(CONFIG_MAP, "a", MergePatch(body), namespace)

    async def test_a_patch_that_changes_nothing_is_no_write(self, api: KubeApi, namespace: str):
        made = await api.create(CONFIG_MAP, config(namespace, "a", one="1"))
        again = await api.patch(CONFIG_MAP, "a", MergePatch({"data": {"one": "1"}}), namespace)
        assert again.meta.resource_version == made.meta.resource_version

    async def test_status_and_spec_are_written_apart(self, api: KubeApi, namespace: str):
        made = await api.create(WIDGET, widget(namespace, "w", size=1) | {"status": {"ready": 9}})
        assert made.status.ready is None
        both = MergePatch({"spec": {"size": 5}, "status": {"ready": 1}})
        after = await api.patch(WIDGET, "w", both, namespace, "status")
        assert (after.spec.size, after.status.ready) == (1, 1)
        assert after.meta.generation == made.meta.generation
        both = MergePatch({"spec": {"size": 6}, "status": {"ready": 2}})
        after = await api.patch(WIDGET, "w", both, namespace)
        assert (after.spec.size, after.status.ready) == (6, 1)
        assert after.meta.generation == made.meta.generation + 1


class Deleting:
    async def test_what_is_deleted_is_gone(self, api: KubeApi, namespace: str):
        await api.create(CONFIG_MAP, config(namespace, "a"))
        await api.delete(CONFIG_MAP, "a", namespace)
        with pytest.raises(NotFound):
            await api.get(CONFIG_MAP, "a", namespace)

    async def test_a_finalizer_keeps_an_object_until_it_is_taken_off(self, api: KubeApi, namespace: str):
        meta = ObjectMeta(name="a", namespace=namespace, finalizers=("neorion.dev/keep",))
        await api.create(CONFIG_MAP, ConfigMap(meta))
        await api.delete(CONFIG_MAP, "a", namespace)
        going = await api.get(CONFIG_MAP, "a", namespace)
        assert going.meta.deleted
        await api.patch(CONFIG_MAP, "a", MergePatch({"metadata": {"finalizers": None}}), namespace)
        with pytest.raises(NotFound):
            await api.get(CONFIG_MAP, "a", namespace)

    async def test_another_object_of_the_same_name_is_not_deleted_by_mistake(
        self, api: KubeApi, namespace: str
    ):
        made = await api.create(CONFIG_MAP, config(namespace, "a"))
        with pytest.raises(Conflict):
            await api.delete(CONFIG_MAP, "a", namespace, DeleteOptions(uid="not-this-one"))
        with pytest.raises(Conflict):
            await api.delete(CONFIG_MAP, "a", namespace, DeleteOptions(version="1"))
        now = DeleteOptions(uid=made.meta.uid, version=made.meta.resource_version)
        await api.delete(CONFIG_MAP, "a", namespace, now)


class Applying:
    async def test_applying_creates_and_the_same_again_changes_nothing(self, api: KubeApi, namespace: str):
        first = await api.apply(WIDGET, widget(namespace, "w", size=1), "me")
        again = await api.apply(WIDGET, widget(namespace, "w", size=1), "me")
        assert again == first

    async def test_a_partial_object_can_be_applied_as_well(self, api: KubeApi, namespace: str):
        thing = Widget(ObjectMeta(name="w", namespace=namespace), WidgetSpec(size=0))
        assert (await api.apply(WIDGET, thing, "me")).spec == WidgetSpec(size=0)

    async def test_a_field_no_longer_given_is_removed(self, api: KubeApi, namespace: str):
        await api.apply(WIDGET, widget(namespace, "w", size=1, colour="red"), "me")
        assert (await api.apply(WIDGET, widget(namespace, "w", size=1), "me")).spec == WidgetSpec(size=1)

    async def test_managers_own_their_fields_and_keep_those_of_others(self, api: KubeApi, namespace: str):
        await api.apply(WIDGET, widget(namespace, "w", size=1), "me")
        both = await api.apply(WIDGET, widget(namespace, "w", colour="red"), "you")
        assert both.spec == WidgetSpec(1, "red")
        assert (await api.apply(WIDGET, widget(namespace, "w", size=2), "me")).spec == WidgetSpec(2, "red")

    async def test_a_field_of_another_manager_is_taken_only_by_force(self, api: KubeApi, namespace: str):
        await api.apply(WIDGET, widget(namespace, "w", size=1), "me")
        with pytest.raises(Conflict) as refused:
            await api.apply(WIDGET, widget(namespace, "w", size=2), "you")
        assert refused.value.code == "kube.conflict"
        taken = await api.apply(WIDGET, widget(namespace, "w", size=2), "you", force=True)
        assert taken.spec.size == 2
        with pytest.raises(Conflict):
            await api.apply(WIDGET, widget(namespace, "w", size=1), "me")

    async def test_status_is_applied_apart(self, api: KubeApi, namespace: str):
        await api.apply(WIDGET, widget(namespace, "w", size=1), "me")
        status = {"metadata": {"name": "w", "namespace": namespace}, "status": {"ready": 3}}
        after = await api.apply(WIDGET, status, "me", subresource="status")
        assert (after.spec.size, after.status.ready) == (1, 3)


class Watching:
    async def test_a_watch_tells_every_change_after_its_version_in_order(self, api: KubeApi, namespace: str):
        await api.create(CONFIG_MAP, config(namespace, "before"))
        since = (await api.list(CONFIG_MAP, namespace)).version
        async with api.watch(CONFIG_MAP, namespace, since=since) as events:
            await api.create(CONFIG_MAP, config(namespace, "a"))
            await api.patch(CONFIG_MAP, "a", MergePatch({"data": {"x": "1"}}), namespace)
            await api.delete(CONFIG_MAP, "a", namespace)
            seen = await take(events, 3)
        assert [type(event) for event in seen] == [Added, Modified, Deleted]
        assert [event.object.meta.name for event in seen if not isinstance(event, Bookmark)] == ["a"] * 3

    async def test_a_watch_resumes_where_another_ended(self, api: KubeApi, namespace: str):
        since = (await api.list(CONFIG_MAP, namespace)).version
        async with api.watch(CONFIG_MAP, namespace, since=since) as events:
            await api.create(CONFIG_MAP, config(namespace, "a"))
            (first,) = await take(events, 1)
        assert isinstance(first, Added)
        await api.create(CONFIG_MAP, config(namespace, "b"))
        async with api.watch(CONFIG_MAP, namespace, since=first.object.meta.resource_version) as events:
            (second,) = await take(events, 1)
        assert isinstance(second, Added)
        assert second.object.meta.name == "b"

    async def test_a_watch_without_a_version_begins_with_what_is_there(self, api: KubeApi, namespace: str):
        for name in ("a", "b"):
            await api.create(WIDGET, widget(namespace, name))
        async with api.watch(WIDGET, namespace) as events:
            assert await take_initial(events) == ["a", "b"]
            await api.delete(WIDGET, "a", namespace)
            (gone,) = await take(events, 1)
        assert isinstance(gone, Deleted)

    async def test_an_object_that_leaves_the_selection_is_told_as_deleted(self, api: KubeApi, namespace: str):
        await api.create(CONFIG_MAP, config(namespace, "a", {"mine": "yes"}))
        await api.create(CONFIG_MAP, config(namespace, "b"))
        async with api.watch(CONFIG_MAP, namespace, Selector(labels="mine=yes")) as events:
            assert await take_initial(events) == ["a"]
            await api.patch(CONFIG_MAP, "a", MergePatch({"metadata": {"labels": {"mine": "no"}}}), namespace)
            await api.patch(CONFIG_MAP, "b", MergePatch({"metadata": {"labels": {"mine": "yes"}}}), namespace)
            left, came = await take(events, 2)
        assert isinstance(left, Deleted)
        assert isinstance(came, Added)
        assert (left.object.meta.name, came.object.meta.name) == ("a", "b")


class KubeApiContract(ReadingAndWriting, Deleting, Applying, Watching):
    """Everything at once."""
