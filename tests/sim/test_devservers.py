"""The operator of development servers under every trouble: homes are kept, all converges, and then nobody writes."""

from datetime import timedelta
from functools import partial
from traceback import format_exception

import anyio
import pytest

from neorion.devservers.controllers import devserver
from neorion.devservers.decide import FINALIZER, HOME_DELETE_AFTER, Observed, home_name
from neorion.devservers.decide import server as decide_server
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERS, DevServerObject
from neorion.keel.base import Duration
from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.core import CLAIM, POD
from neorion.keel.kube.testing import MemoryApi
from neorion.keel.sim import Crash, Host, World, explore, seeds, simulate
from tests.sim.devservers_world import (
    CALM_S,
    HOME_KEPT_S,
    SERVER_KEPT_S,
    SKEW,
    USERS,
    ZONES,
    Harbour,
    Machinery,
    equip,
    operator,
    people,
    pods_of,
    server,
    start,
    unlike_wanted,
)
from tests.sim.kube_world import REPLICAS, Truth
from tests.sim.test_kube import Trouble, crash, cut_watches, forget, lose_answers, pause

# Applies, creations, deletions and patches of the operator, before and after they happen; renewals of its lease not.
EVERY_WRITE = ("kube.[acdp]*.asked", "kube.[acdp]*.done")

# Each test dies at every so many of them, so that none takes long.
STRIDE = 6


async def wrong_clocks(world: World, truth: Truth) -> None:
    """The replicas disagree about the time of day, and are set right again."""
    off = {name: world.rng.uniform(-SKEW.seconds, SKEW.seconds) for name in REPLICAS}
    for name, seconds in off.items():
        world.host(name).clock.jump(seconds)
    await pause(world, truth)
    for name, seconds in off.items():
        world.host(name).clock.jump(-seconds)


async def storm(world: World, truth: Truth) -> None:
    """Somebody writes to everything all the time: whatever was decided was decided on what is old."""
    vandal = MemoryApi(truth.cluster, world.clock, "vandal")
    for number in range(50):
        await world.sleep(world.rng.uniform(0, 0.4))
        mark = MergePatch({"metadata": {"annotations": {"storm": str(number)}}})
        for kind in (DEVSERVERS, DEPLOYMENTS, CLAIM):
            for key in sorted(truth.cluster.entries(kind)):
                await vandal.patch(kind, key.name, mark, key.namespace)


TROUBLES: tuple[Trouble, ...] = (cut_watches, forget, lose_answers, pause, crash, wrong_clocks, storm)


async def operating(world: World, trouble: Trouble) -> None:
    truth, api = start(world)
    async with anyio.create_task_group() as machines:
        machines.start_soon(Machinery(world, truth).run)
        async with anyio.create_task_group() as group:
            group.start_soon(people, world, api, 30)
            await trouble(world, truth)
        world.faults.clear()
        await world.sleep(CALM_S)
        assert await unlike_wanted(truth, api) == []
        writes = truth.writes
        await world.sleep(30)
        assert truth.writes == writes, "writes in steady state"
        machines.cancel_scope.cancel()


@pytest.mark.parametrize("trouble", TROUBLES)
@seeds(7)
async def test_homes_are_kept_all_converges_and_then_nobody_writes(world: World, trouble: Trouble) -> None:
    await operating(world, trouble)


async def lifetime(world: World, point: str, crash_at: int) -> bool:
    """One server from its creation to the end of its home; whether the operator came so far as to die."""
    truth = Harbour(world)
    world.check(truth.violations)
    boots = list[str]()

    async def replica(host: Host) -> None:
        identity = f"one-{len(boots)}"
        boots.append(identity)
        await operator(host, MemoryApi(truth.cluster, host.clock, identity), identity)

    world.faults.at(point, crash_at, Crash(down=Duration.of(ms=500)), host="one")
    world.host("one").start(replica)
    api = MemoryApi(truth.cluster, world.clock, "ann")
    await equip(api)
    async with anyio.create_task_group() as machines:
        machines.start_soon(Machinery(world, truth).run)
        await _live(world, truth, api)
        machines.cancel_scope.cancel()
    return len(boots) > 1


async def _live(world: World, truth: Harbour, api: MemoryApi) -> None:
    # Long enough for a dead holder's lease to run out and the next one to catch up.
    calm = partial(world.sleep, 8)
    await api.create(DEVSERVERS, server("mydev", timeToLive="25s"))
    await calm()
    assert (await api.get(DEVSERVERS, "mydev", USERS)).status.phase is Phase.RUNNING
    home = await api.get(CLAIM, home_name("mydev"), USERS)
    await api.patch(DEVSERVERS, "mydev", MergePatch({"spec": {"flavor": ZONES[1]}}), USERS)
    await calm()
    [pod] = pods_of(truth.cluster.entries(POD), ObjectKey(USERS, "mydev"))
    assert pod["spec"]["nodeSelector"] == {"zone": ZONES[1]}
    await api.patch(DEVSERVERS, "mydev", MergePatch({"spec": {"running": False}}), USERS)
    await calm()
    assert (await api.get(DEVSERVERS, "mydev", USERS)).status.phase is Phase.STOPPED
    assert pods_of(truth.cluster.entries(POD), ObjectKey(USERS, "mydev")) == []
    await api.patch(DEVSERVERS, "mydev", MergePatch({"spec": {"running": True}}), USERS)
    await calm()
    assert (await api.get(DEVSERVERS, "mydev", USERS)).status.phase is Phase.RUNNING
    # Its time counts from the new start; then it rests, expired, and goes after its retention, and last its home.
    await world.sleep(25)
    assert (await api.get(DEVSERVERS, "mydev", USERS)).status.phase is Phase.EXPIRED
    await world.sleep(SERVER_KEPT_S)
    assert (await api.list(DEVSERVERS)).items == []
    kept = await api.get(CLAIM, home_name("mydev"), USERS)
    assert kept.meta.uid == home.meta.uid
    assert HOME_DELETE_AFTER in kept.meta.annotations
    await world.sleep(HOME_KEPT_S)
    assert (await api.list(CLAIM)).items == []
    assert (await api.list(DEPLOYMENTS)).items == []


@pytest.mark.parametrize("first", range(1, STRIDE + 1))
@pytest.mark.parametrize("point", EVERY_WRITE)
def test_an_operator_killed_at_any_write_finishes_what_it_began(point: str, first: int):
    crash_at = first
    while simulate(partial(lifetime, point=point, crash_at=crash_at), 0).check(f"{point} {crash_at}"):
        crash_at += STRIDE
    assert crash_at > 30, "the operator wrote less than one lifetime takes"


def found(trouble: Trouble, told: str) -> None:
    """Some seed finds the planted mistake, calls it by its name, and finds it again."""
    scenario = partial(operating, trouble=trouble)
    failure = explore(scenario, range(100), failures_max=1).first_failure
    assert failure is not None
    assert told in "".join(format_exception(failure.error))
    assert simulate(scenario, failure.seed).digest == failure.digest


def no_time(_text: str) -> timedelta:
    return timedelta(0)


def test_a_home_whose_retention_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decide_server, "span", no_time)
    found(pause, "devservers.home_lost")


def test_a_server_let_go_before_its_home_is_marked_is_found(monkeypatch: pytest.MonkeyPatch):
    """The mark is lost with whoever dies between the two."""

    async def hasty(self: devserver.DevServerController, seen: Observed) -> DevServerObject:
        if seen.server.meta.deleted is None:
            return await owned(self, seen)
        return await self._applier.set_finalizer(DEVSERVERS, seen.server, FINALIZER, wanted=False)

    owned = devserver.DevServerController._ensure_finalizer
    monkeypatch.setattr(devserver.DevServerController, "_ensure_finalizer", hasty)
    ends = (simulate(partial(lifetime, point=EVERY_WRITE[1], crash_at=at), 0) for at in range(1, 60))
    failure = next(end.error for end in ends if not end.ok)
    assert "HOME_DELETE_AFTER in kept.meta.annotations" in "".join(format_exception(failure))
