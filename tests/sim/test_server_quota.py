"""Servers that share quota, under every trouble: all machines of a server or none, never more than the quota, homes kept."""

from collections.abc import Callable
from functools import partial
from traceback import format_exception
from typing import Any

import anyio
import pytest

from neorion.devservers.controllers import DevServerController
from neorion.devservers.decide import Observed, objects, running
from neorion.devservers.decide import quota as decide_quota
from neorion.devservers.decide.quota import QueueEntry
from neorion.keel.sim import World, explore, seeds, simulate
from tests.sim.devservers_world import CALM_S, start
from tests.sim.quota_world import (
    QUEUED_SETTINGS,
    Kueue,
    QuotaHarbour,
    SlowMachinery,
    applicants,
    unlike_quota,
)
from tests.sim.test_devservers import TROUBLES, pause
from tests.sim.test_kube import Trouble, cut_watches


async def sharing(world: World, trouble: Trouble) -> None:
    truth, api = start(world, QuotaHarbour(world), QUEUED_SETTINGS)
    async with anyio.create_task_group() as machines:
        machines.start_soon(SlowMachinery(world, truth).run)
        machines.start_soon(Kueue(world, truth).run)
        async with anyio.create_task_group() as group:
            group.start_soon(applicants, world, api, 60)
            await trouble(world, truth)
        world.faults.clear()
        await world.sleep(CALM_S)
        assert await unlike_quota(truth, api) == []
        writes = truth.writes
        await world.sleep(30)
        assert truth.writes == writes, "writes in steady state"
        machines.cancel_scope.cancel()


@pytest.mark.parametrize("trouble", TROUBLES)
@seeds(3)
async def test_all_machines_or_none_and_never_more_than_the_quota(world: World, trouble: Trouble) -> None:
    await sharing(world, trouble)


def always_admitted(_entry: object) -> bool:
    return True


def never_evicted(_entry: object) -> None:
    return None


def one_machine(server: Any, spec: Any, flavor: Any) -> dict[str, Any]:
    made = decide_quota.workload_manifest(server, spec, flavor)
    made["spec"]["podSets"][0]["count"] = 1
    return made


def ignore_admission(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(objects, "is_admitted", always_admitted)


def ask_for_one_machine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(objects, "workload_manifest", one_machine)


def give_back_while_pods_may_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Observed, "is_drained", property(lambda self: not self.pods))


def ignore_preemption(patch: pytest.MonkeyPatch) -> None:
    for module in (objects, running, decide_quota):
        patch.setattr(module, "eviction", never_evicted)


async def _unconfirmed(_self: object, entry: QueueEntry) -> QueueEntry:
    return entry


def believe_the_cache(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DevServerController, "_confirmed", _unconfirmed)


@pytest.mark.parametrize(
    ("plant", "trouble", "told"),
    [
        (ignore_admission, pause, "devservers.over_quota"),
        (ask_for_one_machine, pause, "devservers.over_quota"),
        (give_back_while_pods_may_come, pause, "devservers.over_quota"),
        (believe_the_cache, cut_watches, "devservers.over_quota"),
        (ignore_preemption, pause, "waits although there is quota for it"),
    ],
)
def test_a_planted_mistake_is_found_by_its_name(
    plant: Callable[[pytest.MonkeyPatch], None],
    trouble: Trouble,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
):
    plant(monkeypatch)
    scenario = partial(sharing, trouble=trouble)
    failure = explore(scenario, range(60), failures_max=1).first_failure
    assert failure is not None
    assert told in "".join(format_exception(failure.error))
    assert simulate(scenario, failure.seed).digest == failure.digest
