"""The end of an operator's life: what it holds it gives back, and what it has lost it leaves to others."""

import anyio

from neorion.keel.kube import Key, Merge
from neorion.keel.kube.control import Controller, Election, Informers, Operator
from neorion.keel.kube.core import LEASE
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.sim import World, simulate
from tests.keel.kube.control.widgets import LEASE_KEY, TENURE


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
            taken = Merge({"spec": {"holderIdentity": "other"}})
            await api.patch(LEASE, LEASE_KEY.name, taken, LEASE_KEY.namespace)
            # It goes away at once: whoever still contended would win.
            await world.sleep(1)
            await api.patch(
                LEASE, LEASE_KEY.name, Merge({"spec": {"holderIdentity": ""}}), LEASE_KEY.namespace
            )

        async with anyio.create_task_group() as group:
            group.start_soon(another_takes_over)
            await election.run(work, stopping)
        await world.sleep(20)
        assert (times, await holder(api)) == (1, "")

    simulate(scenario, 1).check()


def test_who_is_told_to_stop_before_its_work_has_begun_gives_the_lease_back():
    async def scenario(world: World) -> None:
        api, election = lease_of(world)
        ready, go, stopping = anyio.Event(), anyio.Event(), anyio.Event()
        worked = list[Key]()

        async def first() -> None:
            ready.set()
            await go.wait()

        async def reconcile(key: Key) -> None:
            worked.append(key)

        controller = Controller("late", reconcile, world.clock, world.rng)
        informers = Informers(api, world.clock, world.rng)
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
