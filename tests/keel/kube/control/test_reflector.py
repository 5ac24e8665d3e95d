"""Mirrors: true from the beginning, through every change, and again after every kind of gap."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from neorion.keel.base import Duration, Retry, Terminal
from neorion.keel.kube import (
    ALL,
    Bookmark,
    Deleted,
    Kind,
    MergePatch,
    Modified,
    ObjectKey,
    ObjectMeta,
    OwnerReference,
    Selector,
    UndecodableObject,
    WatchEvent,
)
from neorion.keel.kube.control import Informer, InformerFactory, Priority, by_label, by_owner
from neorion.keel.kube.core import CONFIG_MAP, ConfigMap
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.sim import Delay, Fail, World, simulate
from tests.contracts.kube_api import WIDGET, Widget, config
from tests.keel.kube.control.widgets import widget


class Stage:
    """A cluster, a client of it, and mirrors that run."""

    def __init__(self, world: World, *, packed: bool) -> None:
        self.world = world
        self.cluster = MemoryCluster(world.clock)
        self.api = MemoryApi(self.cluster, world.clock)
        self.informers = InformerFactory(self.api, world.clock, world.rng)
        self.widgets = self.informers.of(WIDGET, packed=packed)

    def sizes(self) -> dict[str, int | None]:
        return {thing.meta.name: thing.spec.size for thing in self.widgets}

    async def truth(self) -> dict[str, int | None]:
        return {thing.meta.name: thing.spec.size for thing in (await self.api.list(WIDGET)).items}


def played(scene: Callable[[Stage], Awaitable[None]], seed: int = 1) -> None:
    """Plays the scene in virtual time while the mirrors run: with objects kept as they are, and packed."""

    async def scenario(world: World, *, packed: bool) -> None:
        stage = Stage(world, packed=packed)
        async with anyio.create_task_group() as group:
            group.start_soon(stage.informers.run)
            await scene(stage)
            group.cancel_scope.cancel()

    for packed in (False, True):
        simulate(partial(scenario, packed=packed), seed).check()


def test_a_mirror_holds_what_was_there_and_follows_every_change():
    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.informers.wait_synced()
        assert stage.sizes() == {"a": 1}
        await stage.api.create(WIDGET, widget("b", 2))
        await stage.api.patch(WIDGET, "a", MergePatch({"spec": {"size": 9}}), "default")
        await stage.world.sleep(1)
        assert stage.sizes() == {"a": 9, "b": 2}
        await stage.api.delete(WIDGET, "a", "default")
        await stage.world.sleep(1)
        assert stage.sizes() == {"b": 2}
        assert stage.widgets.get(ObjectKey("default", "a")) is None

    played(scene)


def test_a_watch_that_breaks_resumes_and_nothing_is_missed_or_told_twice():
    async def scene(stage: Stage) -> None:
        told = list[tuple[str, int | None]]()

        def note(_: Widget | None, after: Widget | None, lane: Priority) -> None:
            assert after is not None
            assert lane is Priority.URGENT
            told.append((after.meta.name, after.spec.size))

        await stage.informers.wait_synced()
        stage.widgets.listen(note)
        cut = Fail(lambda: Retry("test.cut", "The connection broke."))
        stage.world.faults.sometimes("kube.watch.told", 0.3, cut)
        for number in range(50):
            await stage.api.create(WIDGET, widget(f"w{number}", number))
            await stage.world.sleep(0.1)
        await stage.world.sleep(600)
        assert told == [(f"w{number}", number) for number in range(50)]

    for seed in range(10):
        played(scene, seed)


def test_a_mirror_that_missed_what_the_server_forgot_begins_anew_and_tells_what_changed():
    async def scene(stage: Stage) -> None:
        for name in ("stays", "goes", "changes"):
            await stage.api.create(WIDGET, widget(name, 1))
        await stage.informers.wait_synced()
        told = list[tuple[str, str, Priority]]()

        def note(before: Widget | None, after: Widget | None, lane: Priority) -> None:
            what = "changed" if before and after else "came" if after else "went"
            thing = after or before
            assert thing is not None
            told.append((what, thing.meta.name, lane))

        stage.widgets.listen(note)
        broken = Fail(lambda: Retry("test.down", "The server is down."))
        stage.world.faults.at("kube.watch.told", 1, broken)
        stage.world.faults.sometimes("kube.watch.asked", 1.0, Delay(Duration.of(seconds=5)))
        await stage.api.delete(WIDGET, "goes", "default")
        await stage.api.patch(WIDGET, "changes", MergePatch({"spec": {"size": 2}}), "default")
        await stage.api.create(WIDGET, widget("comes", 3))
        stage.cluster.history.compact()
        await stage.world.sleep(60)
        assert stage.sizes() == await stage.truth() == {"stays": 1, "changes": 2, "comes": 3}
        assert sorted(told) == [
            ("came", "comes", Priority.PATIENT),
            ("changed", "changes", Priority.PATIENT),
            ("went", "goes", Priority.PATIENT),
        ]

    played(scene)


def test_a_watch_that_goes_silent_is_cut_and_resumed():
    async def scene(stage: Stage) -> None:
        await stage.informers.wait_synced()
        stage.world.faults.at("kube.watch.told", 1, Delay(Duration.of(hours=1000)))
        await stage.api.create(WIDGET, widget("unheard", 1))
        await stage.world.sleep(90)
        assert stage.sizes() == {}
        await stage.world.sleep(20)
        assert stage.sizes() == {"unheard": 1}

    played(scene)


def test_a_watch_that_never_says_anything_is_cut_too():
    async def scenario(world: World) -> None:
        stage = Stage(world, packed=False)
        world.faults.at("kube.watch.asked", 1, Delay(Duration.of(hours=1000)))
        async with anyio.create_task_group() as group:
            group.start_soon(stage.informers.run)
            with anyio.fail_after(110):
                await stage.informers.wait_synced()
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_a_quiet_cluster_is_not_mistaken_for_a_silent_watch():
    async def scene(stage: Stage) -> None:
        await stage.informers.wait_synced()
        asked = stage.world.faults.hits["kube.watch.asked"]
        await stage.world.sleep(290)
        assert stage.world.faults.hits["kube.watch.asked"] == asked
        assert stage.informers.troubles == []

    played(scene)


def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop():
    async def scene(stage: Stage) -> None:
        refused = Fail(lambda: Retry("test.down", "The server is down.", after=Duration.of(seconds=7)))
        stage.world.faults.sometimes("kube.watch.asked", 1.0, refused)
        await stage.world.sleep(70)
        assert stage.world.faults.hits["kube.watch.asked"] <= 11
        assert stage.informers.troubles == [f"{WIDGET.resource}: The server is down."]
        assert not stage.informers.synced

    played(scene)


def test_what_was_written_is_read_at_once_and_an_older_event_does_not_undo_it():
    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.informers.wait_synced()
        stage.world.faults.sometimes("kube.watch.told", 1.0, Delay(Duration.of(seconds=10)))
        await stage.api.patch(WIDGET, "a", MergePatch({"spec": {"size": 2}}), "default")
        written = await stage.api.patch(WIDGET, "a", MergePatch({"spec": {"size": 3}}), "default")
        sizes = list[int | None]()
        stage.widgets.listen(lambda _, after, __: sizes.append(after.spec.size if after else None))
        stage.informers.observe(WIDGET, written)
        assert stage.sizes() == {"a": 3}
        await stage.world.sleep(60)
        assert sizes == [3]

    played(scene)


def test_an_answer_that_comes_after_the_end_of_its_object_does_not_bring_it_back():
    async def scene(stage: Stage) -> None:
        await stage.informers.wait_synced()
        written = await stage.api.create(WIDGET, widget("a", 1))
        await stage.api.delete(WIDGET, "a", "default")
        await stage.world.sleep(1)
        stage.informers.observe(WIDGET, written)
        assert stage.sizes() == {}

    played(scene)


def test_one_that_was_deleted_and_made_anew_is_not_taken_away_by_the_late_news_of_its_end():
    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.informers.wait_synced()
        stage.world.faults.sometimes("kube.watch.told", 1.0, Delay(Duration.of(seconds=10)))
        await stage.api.delete(WIDGET, "a", "default")
        stage.informers.observe(WIDGET, await stage.api.create(WIDGET, widget("a", 2)))
        for _ in range(60):
            await stage.world.sleep(1)
            assert stage.sizes() == {"a": 2}

    played(scene)


def test_whoever_asks_for_the_same_objects_shares_one_mirror_and_one_watch():
    async def scene(stage: Stage) -> None:
        assert stage.informers.of(WIDGET) is stage.widgets
        assert stage.informers.of(WIDGET, "default") is not stage.widgets
        await stage.informers.wait_synced()

    played(scene)


def made(name: str, version: int, *, owner: str = "", **labels: str) -> ConfigMap:
    owners = (OwnerReference("v1", "Thing", owner, owner),) if owner else ()
    return ConfigMap(
        ObjectMeta(name=name, namespace="ns", labels=labels, owners=owners, resource_version=str(version))
    )


class Impatient(MemoryApi):
    """A server that ends its first watch in the middle of the list."""

    watches = 0

    @asynccontextmanager
    async def watch(
        self, kind: Kind[Any], namespace: str = "", select: Selector = ALL, since: str = ""
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[Any]]]:
        self.watches += 1
        async with super().watch(kind, namespace, select, since) as events:
            yield self._first(events) if self.watches == 1 else events

    async def _first(self, events: AsyncIterator[WatchEvent[Any]]) -> AsyncIterator[WatchEvent[Any]]:
        yield await anext(events)


def test_a_list_that_ends_before_it_is_whole_is_no_list():
    async def scenario(world: World) -> None:
        api = Impatient(MemoryCluster(world.clock), world.clock)
        for name in ("a", "b", "c"):
            await api.create(WIDGET, widget(name, 1))
        informers = InformerFactory(api, world.clock, world.rng)
        mirror = informers.of(WIDGET)
        async with anyio.create_task_group() as group:
            group.start_soon(informers.run)
            await informers.wait_synced()
            assert {thing.meta.name for thing in mirror} == {"a", "b", "c"}
            assert api.watches == 2
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


class Hasty(MemoryApi):
    """A server whose list is told to be whole only after what has changed meanwhile."""

    @asynccontextmanager
    async def watch(
        self, kind: Kind[Any], namespace: str = "", select: Selector = ALL, since: str = ""
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[Any]]]:
        async with super().watch(kind, namespace, select, since) as events:
            yield events if since else self._late(events)

    async def _late(self, events: AsyncIterator[WatchEvent[Any]]) -> AsyncIterator[WatchEvent[Any]]:
        async for event in events:
            if isinstance(event, Bookmark) and event.initial_done:
                await self.patch(WIDGET, "a", MergePatch({"spec": {"size": 9}}), "default")
                await self.delete(WIDGET, "b", "default")
                changed, gone = await anext(events), await anext(events)
                assert isinstance(changed, Modified)
                assert isinstance(gone, Deleted)
                yield changed
                yield gone
                yield Bookmark(gone.object.meta.resource_version, initial_done=True)
            else:
                yield event


def test_what_goes_while_a_list_is_told_is_not_in_the_mirror():
    async def scenario(world: World) -> None:
        api = Hasty(MemoryCluster(world.clock), world.clock)
        for name in ("a", "b"):
            await api.create(WIDGET, widget(name, 1))
        informers = InformerFactory(api, world.clock, world.rng)
        mirror = informers.of(WIDGET)
        async with anyio.create_task_group() as group:
            group.start_soon(informers.run)
            await informers.wait_synced()
            assert {thing.meta.name: thing.spec.size for thing in mirror} == {"a": 9}
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


@pytest.mark.anyio
async def test_indexes_follow_changes_and_forget_what_is_gone():
    informer = Informer(CONFIG_MAP)
    informer.update(made("a", 1, owner="o1", tier="x"))
    owners, tiers = informer.index(by_owner), informer.index(by_label("tier"))
    informer.update(made("b", 2, owner="o1"))
    assert [thing.meta.name for thing in owners.get("o1")] == ["a", "b"]
    informer.update(made("a", 3, owner="o2", tier="y"))
    assert [thing.meta.name for thing in owners.get("o1")] == ["b"]
    assert [thing.meta.name for thing in tiers.get("y")] == ["a"]
    assert tiers.get("x") == []
    informer.delete(made("b", 4, owner="o1").meta)
    assert owners.get("o1") == []
    assert "o1" not in owners._keys


@pytest.mark.anyio
async def test_an_object_that_names_an_owner_twice_is_found_once_and_forgotten_whole():
    informer = Informer(CONFIG_MAP)
    owners = informer.index(by_owner)
    # A server strikes out only what is the same in every field.
    twice = (
        OwnerReference("v1", "Pod", "p", "o1"),
        OwnerReference("v1", "Pod", "p", "o1", block_owner_deletion=True),
    )
    for version in ("1", "2"):
        informer.update(ConfigMap(meta=ObjectMeta("a", "default", resource_version=version, owners=twice)))
        assert [thing.meta.name for thing in owners.get("o1")] == ["a"]
    informer.delete(ObjectMeta("a", "default", resource_version="3", owners=twice))
    assert owners.get("o1") == []


@pytest.mark.anyio
async def test_a_mirror_of_a_selection_takes_in_only_what_is_selected():
    informer = Informer(CONFIG_MAP, "ns", Selector(labels="tier in (x, y)"))
    informer.observe(made("a", 1, tier="x"))
    informer.observe(made("b", 2, tier="z"))
    informer.observe(config("elsewhere", "c", {"tier": "x"}))
    assert [thing.meta.name for thing in informer] == ["a"]


@pytest.mark.anyio
async def test_a_restored_server_is_believed_though_its_versions_are_older():
    informer = Informer(CONFIG_MAP, select=ALL)
    informer.replace_all({ObjectKey("ns", name): made(name, 900) for name in ("a", "b")}, 1000)
    old = made("a", 100, tier="restored")
    informer.replace_all({ObjectKey("ns", "a"): old}, 200)
    assert list(informer) == [old]


@pytest.mark.anyio
@pytest.mark.parametrize(("uid", "left"), [("1", ["a"]), ("2", [])], ids=["the same", "another of its name"])
async def test_a_list_with_an_object_that_cannot_be_read_leaves_what_is_known_of_that_one(
    uid: str, left: list[str]
):
    informer, key = Informer(CONFIG_MAP), ObjectKey("ns", "a")
    informer.replace_all({key: ConfigMap(meta=ObjectMeta("a", "ns", uid="1", resource_version="5"))}, 10)
    unreadable = UndecodableObject(
        ObjectMeta("a", "ns", uid=uid, resource_version="15"), Terminal("kube.shape", "No.")
    )
    informer.replace_all({}, 20, {key: unreadable})
    assert ([thing.meta.name for thing in informer], informer.unreadable) == (left, {key: "No."})


@pytest.mark.anyio
async def test_a_list_does_not_undo_what_was_written_after_it_was_made():
    informer = Informer(CONFIG_MAP)
    informer.replace_all({}, 10)
    informer.observe(made("new", 15))
    informer.observe(made("newer", 16))
    informer.replace_all({ObjectKey("ns", "new"): made("new", 9)}, 12)
    assert {thing.meta.name: thing.meta.resource_version for thing in informer} == {
        "new": "15",
        "newer": "16",
    }
    informer.replace_all({}, 20)
    assert list(informer) == []
