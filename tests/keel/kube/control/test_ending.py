"""The end of an operator's life: what it holds it gives back, and what it has lost it leaves to others."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio

from neorion.keel.kube import ALL, Bookmark, Kind, MergePatch, ObjectKey, Selector, WatchEvent
from neorion.keel.kube.control import Controller, Election, InformerFactory, Operator
from neorion.keel.kube.core import LEASE
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.sim import World, simulate
from tests.keel.kube.control.widgets import LEASE_KEY, TENURE

T = TypeVar("T")


def lease_of(world: World) -> tuple[MemoryApi, Election]:
    api = MemoryApi(MemoryCluster(world.clock), world.clock)
    return api, Election(api, LEASE_KEY, "one", world.clock, world.rng, TENURE)


async def holder(api: MemoryApi) -> str:
    return (await api.get(LEASE, LEASE_KEY.name, LEASE_KEY.namespace)).spec.holder_identity


def test_who_is_stopping_does_not_contend_for_a_lease_it_has_lost():
    async def scenario(world: World) -> None:
        api, election = lease_of(world)
        begun, stopping = anyio.Event(), anyio.Event()
        times = 0

        async def work() -> None:
            nonlocal times
            times += 1
            begun.set()
            await anyio.sleep_forever()

        async def another_takes_over() -> None:
            await begun.wait()
            stopping.set()
            taken = MergePatch({"spec": {"holderIdentity": "other"}})
            await api.patch(LEASE, LEASE_KEY.name, taken, LEASE_KEY.namespace)
            # It goes away at once: whoever still contended would win.
            await world.sleep(1)
            await api.patch(
                LEASE, LEASE_KEY.name, MergePatch({"spec": {"holderIdentity": ""}}), LEASE_KEY.namespace
            )

        async with anyio.create_task_group() as group:
            group.start_soon(another_takes_over)
            await election.run(work, stopping)
        await world.sleep(20)
        assert (times, await holder(api)) == (1, "")

    simulate(scenario, 1).check()


def test_a_lease_that_somebody_removes_is_taken_only_when_its_holder_has_stopped():
    async def scenario(world: World) -> None:
        api, first = lease_of(world)
        second = Election(api, LEASE_KEY, "two", world.clock, world.rng, TENURE)
        holding = set[str]()

        async def work(name: str) -> None:
            holding.add(name)
            assert len(holding) == 1
            try:
                await anyio.sleep_forever()
            finally:
                holding.discard(name)

        async with anyio.create_task_group() as group:
            group.start_soon(first.run, partial(work, "one"))
            await world.sleep(1)
            group.start_soon(second.run, partial(work, "two"))
            await world.sleep(1)
            await api.delete(LEASE, LEASE_KEY.name, LEASE_KEY.namespace)
            # Long enough for each to have had its turn.
            await world.sleep(3 * TENURE.lasts.seconds)
            assert holding
            group.cancel_scope.cancel()

    for seed in range(20):
        simulate(scenario, seed).check()


class _Deaf(MemoryApi):
    """Its first watch says nothing, as one behind a proxy that has lost its server."""

    deaf = True

    @asynccontextmanager
    async def _silence(self) -> AsyncGenerator[AsyncIterator[WatchEvent[Any]]]:
        async def nothing() -> AsyncGenerator[WatchEvent[Any]]:
            await anyio.sleep_forever()
            yield Bookmark("never")

        yield nothing()

    def watch(
        self, kind: Kind[T], namespace: str = "", select: Selector = ALL, since: str = ""
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent[T]]]:
        if self.deaf:
            self.deaf = False
            return self._silence()
        return super().watch(kind, namespace, select, since)


def test_a_candidate_whose_watch_says_nothing_looks_again():
    async def scenario(world: World) -> None:
        api = _Deaf(MemoryCluster(world.clock), world.clock)
        election = Election(api, LEASE_KEY, "one", world.clock, world.rng, TENURE)

        async def work() -> None:
            return

        with anyio.fail_after(3 * TENURE.lasts.seconds):
            await election.run(work)

    simulate(scenario, 1).check()


def test_who_is_told_to_stop_before_its_work_has_begun_gives_the_lease_back():
    async def scenario(world: World) -> None:
        api, election = lease_of(world)
        ready, go, stopping = anyio.Event(), anyio.Event(), anyio.Event()
        worked = list[ObjectKey]()

        async def first() -> None:
            ready.set()
            await go.wait()

        async def reconcile(key: ObjectKey) -> None:
            worked.append(key)

        controller = Controller("late", reconcile, world.clock, world.rng)
        informers = InformerFactory(api, world.clock, world.rng)
        operator = Operator(informers, [controller], election, first=first)
        async with anyio.create_task_group() as group:
            group.start_soon(operator.run, stopping)
            await ready.wait()
            assert await holder(api) == "one"
            stopping.set()
            await world.sleep(1)
            go.set()
        assert (worked, await holder(api)) == ([], "")

    simulate(scenario, 1).check()
