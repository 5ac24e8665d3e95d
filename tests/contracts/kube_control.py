"""What operators may count on, with the double and with a real API server behind the port alike.

A subclass gives the fixtures `api` and `namespace`; the kind WIDGET is installed, with a status subresource.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from neorion.keel.base import Conflict, Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import (
    Added,
    Bookmark,
    Kind,
    KubeApi,
    KubeObject,
    MergePatch,
    Modified,
    ObjectKey,
    Selector,
)
from neorion.keel.kube.control import (
    Applier,
    Election,
    EventRecorder,
    Informer,
    InformerFactory,
    LeaderLeaseTiming,
)
from neorion.keel.kube.core import CONFIG_MAP, EVENT, LEASE, ConfigMap, Event
from neorion.keel.kube.objects import micro_time_text
from tests.contracts.kube_api import PATIENCE_S, WIDGET, Widget, WidgetStatus
from tests.keel.kube.control.widgets import FINALIZER, Surroundings, WidgetOperator, Writes, widget

CLOCK = SystemClock()
RNG = system_rng()
# Real time passes here: a busy machine has to stand still for seconds before a holder stops.
TENURE = LeaderLeaseTiming(Duration.of(seconds=6), Duration.of(seconds=5), Duration.of(ms=250))
# Whoever contends by this one sees a lease that was not given back for longer than any test lasts.
FOR_HOURS = LeaderLeaseTiming(Duration.of(hours=2), Duration.of(hours=1), Duration.of(ms=250))


async def until(holds: Callable[[], bool], *mirrors: Informer[Any], patience_s: float = PATIENCE_S) -> None:
    """Looks again at every change of one of the mirrors."""
    changed = anyio.Event()
    for mirror in mirrors:
        mirror.listen(lambda _before, _after, _lane: changed.set())
    with anyio.fail_after(patience_s):
        for mirror in mirrors:
            await mirror.wait_synced()
        while not holds():
            await changed.wait()
            changed = anyio.Event()


@asynccontextmanager
async def running(operator: WidgetOperator) -> AsyncGenerator[WidgetOperator]:
    stopping = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(operator.operator.run, stopping)
        try:
            yield operator
        finally:
            stopping.set()


class Hand:
    """An applier, and the count of what it wrote."""

    def __init__(self, api: KubeApi) -> None:
        self.writes = Writes()
        self.applier = Applier(api, "contract", InformerFactory(api, CLOCK, RNG), measures=self.writes)


class ApplyingWhatDiffers:
    async def test_the_same_is_applied_once_also_by_one_who_starts_anew(self, api: KubeApi, namespace: str):
        hand, wanted = Hand(api), widget("w", 1, namespace)
        first = await hand.applier.apply(WIDGET, wanted, None)
        assert await hand.applier.apply(WIDGET, wanted, first) is first
        changed = await hand.applier.apply(WIDGET, widget("w", 2, namespace), first)
        labelled = await hand.applier.apply(WIDGET, widget("w", 2, namespace, labels={"a": "b"}), changed)
        assert hand.writes.total() == 3
        later = Hand(api)
        read = await api.get(WIDGET, "w", namespace)
        assert read == labelled
        await later.applier.apply(WIDGET, widget("w", 2, namespace, labels={"a": "b"}), read)
        assert later.writes.total() == 0

    async def test_what_has_no_generations_is_read_instead(self, api: KubeApi, namespace: str):
        wanted = {"metadata": {"name": "c", "namespace": namespace}, "data": {"x": "1"}}
        hand = Hand(api)
        seen = await hand.applier.apply(CONFIG_MAP, wanted, None)
        await hand.applier.apply(CONFIG_MAP, wanted, seen)
        assert hand.writes.total() == 1
        later = Hand(api)
        seen = await later.applier.apply(CONFIG_MAP, wanted, await api.get(CONFIG_MAP, "c", namespace))
        assert later.writes.total() == 0
        edited = await api.patch(CONFIG_MAP, "c", MergePatch({"data": {"x": "2"}}), namespace)
        seen = await Hand(api).applier.apply(CONFIG_MAP, wanted, edited)
        assert seen.data == {"x": "1"}
        shrunk = {"metadata": wanted["metadata"], "data": {}}
        assert (await Hand(api).applier.apply(CONFIG_MAP, shrunk, seen)).data == {}

    async def test_what_neither_counts_nor_can_be_read_is_applied_once_after_each_start(
        self, api: KubeApi, namespace: str
    ):
        blind = Kind(KubeObject, "ConfigMap", "configmaps")
        wanted = {"metadata": {"name": "c", "namespace": namespace}, "data": {"x": "1"}}
        for _ in range(2):
            hand = Hand(api)
            seen = await api.apply(blind, wanted, "contract")
            for _ in range(2):
                seen = await hand.applier.apply(blind, wanted, seen)
            assert hand.writes.total() == 1

    @pytest.mark.parametrize(
        "edit", [{"spec": {"size": 7}}, {"metadata": {"labels": {"a": None}}}, {"spec": {"size": None}}]
    )
    @pytest.mark.parametrize("anew", [False, True], ids=["same process", "after a restart"])
    async def test_somebody_elses_edit_is_repaired(
        self, api: KubeApi, namespace: str, edit: dict[str, object], *, anew: bool
    ):
        wanted = widget("w", 1, namespace, labels={"a": "b"})
        hand = Hand(api)
        await hand.applier.apply(WIDGET, wanted, None)
        edited = await api.patch(WIDGET, "w", MergePatch(edit), namespace)
        hand = Hand(api) if anew else hand
        repaired = await hand.applier.apply(WIDGET, wanted, edited)
        assert (repaired.spec.size, repaired.meta.labels) == (1, {"a": "b"})
        writes = hand.writes.total()
        await hand.applier.apply(WIDGET, wanted, repaired)
        assert hand.writes.total() == writes

    async def test_fields_of_others_are_left_alone(self, api: KubeApi, namespace: str):
        hand = Hand(api)
        await hand.applier.apply(WIDGET, widget("w", 1, namespace), None)
        edited = await api.patch(WIDGET, "w", MergePatch({"spec": {"colour": "red"}}), namespace)
        assert (await hand.applier.apply(WIDGET, widget("w", 2, namespace), edited)).spec.colour == "red"

    async def test_what_was_decided_before_the_last_change_is_not_applied(self, api: KubeApi, namespace: str):
        hand = Hand(api)
        seen = await hand.applier.apply(WIDGET, widget("w", 1, namespace), None)
        await hand.applier.apply(WIDGET, widget("w", 2, namespace), seen)
        with pytest.raises(Conflict):
            await Hand(api).applier.apply(WIDGET, widget("w", 3, namespace), seen)

    async def test_what_was_decided_for_one_object_is_not_applied_to_its_namesake(
        self, api: KubeApi, namespace: str
    ):
        hand = Hand(api)
        seen = await hand.applier.apply(WIDGET, widget("w", 1, namespace), None)
        await api.delete(WIDGET, "w", namespace)
        with pytest.raises(Conflict):
            await hand.applier.apply(WIDGET, widget("w", 2, namespace), seen)
        await api.create(WIDGET, widget("w", 5, namespace))
        with pytest.raises(Conflict):
            await hand.applier.apply(WIDGET, widget("w", 2, namespace), seen)
        with pytest.raises(Conflict):
            await hand.applier.delete(WIDGET, seen)
        assert (await api.get(WIDGET, "w", namespace)).spec.size == 5

    async def test_a_status_is_written_only_if_it_differs_and_only_on_what_was_seen(
        self, api: KubeApi, namespace: str
    ):
        hand = Hand(api)
        seen = await api.create(WIDGET, widget("w", 1, namespace))
        done = await hand.applier.write_status(WIDGET, seen, WidgetStatus(ready=1))
        assert await hand.applier.write_status(WIDGET, done, WidgetStatus(ready=1)) is done
        assert hand.writes.total() == 1
        with pytest.raises(Conflict):
            await hand.applier.write_status(WIDGET, seen, WidgetStatus(ready=2))
        assert (await hand.applier.write_status(WIDGET, done, WidgetStatus())).status == WidgetStatus()

    async def test_a_finalizer_is_put_on_and_taken_off_among_others(self, api: KubeApi, namespace: str):
        hand = Hand(api)
        seen = await api.create(WIDGET, widget("w", 1, namespace, finalizers=["other.dev/x"]))
        seen = await hand.applier.set_finalizer(WIDGET, seen, FINALIZER, wanted=True)
        assert await hand.applier.set_finalizer(WIDGET, seen, FINALIZER, wanted=True) is seen
        await hand.applier.delete(WIDGET, seen)
        going = await api.get(WIDGET, "w", namespace)
        assert set(going.meta.finalizers) == {"other.dev/x", FINALIZER}
        going = await hand.applier.set_finalizer(WIDGET, going, FINALIZER, wanted=False)
        assert going.meta.finalizers == ("other.dev/x",)
        await hand.applier.set_finalizer(WIDGET, going, "other.dev/x", wanted=False)
        await hand.applier.delete(WIDGET, going)
        await hand.applier.delete(WIDGET, None)


class Operating:
    async def test_an_operator_converges_repairs_and_then_writes_nothing(self, api: KubeApi, namespace: str):
        for number in range(20):
            await api.create(WIDGET, widget(f"w{number}", number, namespace))
        around = Surroundings(api, CLOCK, RNG, "one")
        async with running(WidgetOperator(around, namespace=namespace)) as one:
            await until(lambda: _all_ready(one), one.widgets)
            third = await api.get(CONFIG_MAP, "w3", namespace)
            fourth = await api.get(CONFIG_MAP, "w4", namespace)
            assert third.data == {"size": "3"}
            await api.patch(CONFIG_MAP, "w3", MergePatch({"data": {"size": "vandal"}}), namespace)
            await until(lambda: _is_new(one, third) and _sizes(one)["w3"] == "3", one.configs)
            await api.delete(CONFIG_MAP, "w4", namespace)
            await until(lambda: _is_new(one, fourth) and _sizes(one).get("w4") == "4", one.configs)
            await api.patch(WIDGET, "w5", MergePatch({"spec": {"size": 50}}), namespace)
            await until(lambda: _all_ready(one), one.widgets)
            await until(lambda: _sizes(one)["w5"] == "50", one.configs)
        assert set(one.writes) == {"apply configmaps", f"status {WIDGET.resource}"}
        async with running(WidgetOperator(around, namespace=namespace)) as again:
            await api.patch(WIDGET, "w6", MergePatch({"spec": {"size": 60}}), namespace)
            await until(lambda: _sizes(again).get("w6") == "60", again.configs)
            await until(lambda: _all_ready(again), again.widgets)
        assert again.writes[f"status {WIDGET.resource}"] == 1

    async def test_a_deleted_widget_takes_its_config_along(self, api: KubeApi, namespace: str):
        around = Surroundings(api, CLOCK, RNG, "one")
        async with running(WidgetOperator(around, namespace=namespace)) as one:
            await api.create(WIDGET, widget("w", 1, namespace, finalizers=[FINALIZER]))
            await until(lambda: "w" in _sizes(one), one.configs)
            await api.delete(WIDGET, "w", namespace)
            await until(lambda: "w" not in _sizes(one), one.configs)
            await until(lambda: len(one.widgets) == 0, one.widgets)


class Electing:
    async def test_one_holds_the_lease_until_it_gives_it_back(self, api: KubeApi, namespace: str):
        order = list[str]()
        stop = {name: anyio.Event() for name in ("first", "second", "third")}
        begun = {name: anyio.Event() for name in stop}

        async def contend(name: str, tenure: LeaderLeaseTiming = TENURE) -> None:
            election = Election(api, ObjectKey(namespace, "lease"), name, CLOCK, RNG, tenure)

            async def work() -> None:
                election.check()
                order.append(f"{name} begins")
                begun[name].set()
                await stop[name].wait()
                order.append(f"{name} ends")

            await election.run(work)
            with pytest.raises(Conflict):
                election.check()

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(contend, "first")
                await begun["first"].wait()
                group.start_soon(contend, "second")
                await self._renewed(api, namespace, times=2 + int(TENURE.lasts / TENURE.renew_every))
                stop["first"].set()
                await begun["second"].wait()
                group.start_soon(contend, "third", FOR_HOURS)
                stop["second"].set()
                await begun["third"].wait()
                stop["third"].set()
        assert order == [f"{name} {does}" for name in stop for does in ("begins", "ends")]
        lease = await api.get(LEASE, "lease", namespace)
        assert lease.spec.holder_identity == ""
        assert lease.spec.lease_transitions == 3

    async def test_a_lease_is_given_back_although_its_last_renewal_was_never_heard_of(
        self, api: KubeApi, namespace: str
    ):
        election = Election(api, ObjectKey(namespace, "lease"), "first", CLOCK, RNG, TENURE)

        async def renewed_behind_its_back() -> None:
            lease = await api.get(LEASE, "lease", namespace)
            later = replace(lease.spec, renew_time=micro_time_text(CLOCK.now()))
            await api.replace(LEASE, replace(lease, spec=later))

        with anyio.fail_after(PATIENCE_S):
            await election.run(renewed_behind_its_back)
        assert (await api.get(LEASE, "lease", namespace)).spec.holder_identity == ""

    async def _renewed(self, api: KubeApi, namespace: str, times: int) -> None:
        """Returns after longer than a lease lasts that nobody renews."""
        async with api.watch(LEASE, namespace) as events:
            async for event in events:
                times -= isinstance(event, Modified)
                if times == 0:
                    return


class Recording:
    async def test_the_same_told_often_is_one_event_with_a_count(self, api: KubeApi, namespace: str):
        about = await api.create(WIDGET, widget("w", 1, namespace))
        recorder = EventRecorder(api, "contract.neorion.dev/widgets", "one", CLOCK)
        for _ in range(5):
            recorder.tell(WIDGET, about, "Stuck", "It waits for a colour.", warning=True)
        recorder.tell(WIDGET, about, "Painted", "x" * 2000)
        found = list[Event]()
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            with anyio.fail_after(PATIENCE_S):
                async with api.watch(EVENT, namespace, Selector()) as events:
                    async for event in events:
                        if isinstance(event, Added | Modified):
                            found.append(event.object)
                        if len(found) == 2 and isinstance(event, Bookmark | Added):
                            break
            group.cancel_scope.cancel()
        stuck, painted = sorted(found, key=lambda event: event.reason, reverse=True)
        assert (stuck.reason, stuck.type) == ("Stuck", "Warning")
        assert stuck.series is not None
        assert stuck.series.count == 5
        assert stuck.regarding.uid == about.meta.uid
        assert painted.series is None
        assert len(painted.note) == 1024


def _sizes(operator: WidgetOperator) -> dict[str, str]:
    return {config.meta.name: config.data.get("size", "") for config in operator.configs}


def _is_new(operator: WidgetOperator, old: ConfigMap) -> bool:
    found = operator.configs.get(old.meta.key)
    return found is not None and found.meta.resource_version != old.meta.resource_version


def _ready(one: Widget) -> bool:
    return one.status.ready == one.spec.size


def _all_ready(operator: WidgetOperator) -> bool:
    return all(_ready(one) for one in operator.widgets)


class Numbers(KubeObject, frozen=True):
    """A ConfigMap of which somebody believes that it holds numbers: one that holds anything cannot be read."""

    data: dict[str, int] = msgspec.field(default_factory=dict)


NUMBERS = Kind(Numbers, "ConfigMap", "configmaps")
COUNTED = Selector(labels="counted=yes")


async def count(api: KubeApi, namespace: str, name: str, **data: str) -> None:
    labels = {"counted": "yes"}
    meta = {"name": name, "namespace": namespace, "labels": labels}
    await api.apply(CONFIG_MAP, {"metadata": meta, "data": data}, "contract")


class Mirroring:
    async def test_an_object_that_cannot_be_read_hides_no_other_and_is_not_taken_for_gone(
        self, api: KubeApi, namespace: str
    ):
        tally = Writes()
        informers = InformerFactory(api, CLOCK, RNG, measures=tally)
        mirror = informers.of(NUMBERS, namespace, COUNTED)
        first, second = ObjectKey(namespace, "first"), ObjectKey(namespace, "second")
        await count(api, namespace, "first")
        async with anyio.create_task_group() as group:
            group.start_soon(informers.run)
            await until(lambda: len(mirror) == 1, mirror)
            known = mirror.get(first)
            await count(api, namespace, "first", much="1")
            await count(api, namespace, "second")
            await until(lambda: mirror.get(second) is not None, mirror)
            assert (mirror.get(first), list(mirror.unreadable)) == (known, [first])
            assert tally["unreadable configmaps"] == 1
            [told] = informers.unreadable
            assert told.startswith(f"1 of configmaps cannot be read, {first} for one: ")
            await count(api, namespace, "first")
            await until(lambda: not mirror.unreadable, mirror)
            assert mirror.get(first) != known
            await count(api, namespace, "first", much="1")
            await api.delete(CONFIG_MAP, "first", namespace)
            await until(lambda: mirror.get(first) is None, mirror)
            assert (mirror.unreadable, tally["unreadable configmaps"]) == ({}, 0)
            group.cancel_scope.cancel()

    async def test_a_mirror_that_never_knew_an_object_is_whole_without_it_only_for_who_says_so(
        self, api: KubeApi, namespace: str
    ):
        await count(api, namespace, "first", much="1")
        await count(api, namespace, "second")
        lenient, strict = InformerFactory(api, CLOCK, RNG), InformerFactory(api, CLOCK, RNG)
        mirror = lenient.of(NUMBERS, namespace, COUNTED, gaps=True)
        other = strict.of(NUMBERS, namespace, COUNTED)
        async with anyio.create_task_group() as group:
            group.start_soon(strict.run)
            group.start_soon(lenient.run)
            await until(lambda: len(mirror) == 1, mirror)
            assert [*mirror.unreadable] == [ObjectKey(namespace, "first")]
            with anyio.fail_after(PATIENCE_S):
                while not strict.troubles:
                    await CLOCK.sleep(Duration.of(ms=10))
            assert not other.synced
            await count(api, namespace, "first")
            await until(lambda: len(mirror) == len(other) == 2, mirror, other)
            group.cancel_scope.cancel()


class KubeControlContract(ApplyingWhatDiffers, Operating, Electing, Recording, Mirroring):
    """Everything at once."""
