"""gang_scheduling by any of the gang schedulers that clusters have, on one node with one accelerator too few."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.gangs import GANG_SCHEDULERS, Gang, GangScheduler
from neorion.conformance.adapters.gangs.gang import GANG_LABEL
from neorion.conformance.adapters.kinds import POD, Json
from neorion.conformance.adapters.pods import MOMENT, RUNS_ON, make_pod, named, node_supplies, pod_spec
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.gang import (
    both_finish,
    bound,
    placed_whole,
    waits_for_room,
    whole_or_not_at_all,
)
from neorion.conformance.decide.nodes import NodeSupply
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome

# Of a gang that fits alone and not beside another of its size.
_LARGE_SHARE: Final = 0.8
# More would take long to create and show nothing more.
_SIZE_MAX: Final = 16


async def _run(workspace: Workspace) -> Outcome:
    scheduler = await _scheduler(workspace)
    if scheduler is None:
        wanted = workspace.options.gang_scheduler
        known = [each.needs for each in GANG_SCHEDULERS if wanted in {"", each.name}]
        return Outcome(missing=f"No gang scheduler is installed. Known are: {'; '.join(known)}.")
    nodes = [node for node in await node_supplies(workspace) if node.free >= 2]
    if not nodes:
        resource = workspace.options.profile.resource
        return Outcome(missing=f"No ready node has two free {resource}.")
    node = nodes[0]
    size = min(node.free, _SIZE_MAX)
    await scheduler.prepare(workspace, node)
    # Leaves room for one pod fewer than a gang has. A gang of the same scheduler: Kueue looks again at what waits when
    # one of its own leaves.
    blocking = pod_spec(workspace, node, node.free - size + 1)
    await scheduler.start(workspace, Gang("blocker", 1, blocking, RUNS_ON))
    if await workspace.until(POD, lambda pods: bound(pods) == 1 or None) is None:
        workspace.assert_that(placed_whole(0, 1, workspace.options.patience.seconds))
        return Outcome(node.environment, tuple(workspace.assertions), subject=scheduler.name)
    await _gang_waits(workspace, scheduler, node, size)
    await _released(workspace, scheduler, size)
    await _control(workspace, node, size)
    await _two_gangs(workspace, scheduler, node, size)
    return Outcome(
        node.environment, tuple(workspace.assertions), tuple(workspace.controls), subject=scheduler.name
    )


async def _scheduler(workspace: Workspace) -> GangScheduler | None:
    """The one that was asked for, or the first that the cluster serves."""
    wanted = workspace.options.gang_scheduler
    for scheduler in GANG_SCHEDULERS:
        if wanted in {"", scheduler.name} and await scheduler.is_served(workspace):
            return scheduler
    return None


async def _gang_waits(workspace: Workspace, scheduler: GangScheduler, node: NodeSupply, size: int) -> None:
    await scheduler.start(workspace, _gang(workspace, "gang", node, size))
    counts = await _counts(workspace, "gang", size)
    seconds = workspace.options.window.seconds
    workspace.assert_that(whole_or_not_at_all(counts, size, seconds))
    workspace.assert_that(waits_for_room(counts, size))


async def _released(workspace: Workspace, scheduler: GangScheduler, size: int) -> None:
    began = workspace.clock.monotonic()
    await scheduler.delete(workspace, "blocker")
    found = await workspace.until(POD, lambda pods: _whole(pods, "gang", size))
    pods = named(await workspace.api.list(POD, workspace.namespace), **{GANG_LABEL: "gang"})
    count = found or bound(pods)
    workspace.assert_that(placed_whole(count, size, workspace.clock.monotonic() - began))
    await workspace.until(POD, lambda pods: _finished(pods, "gang", size) or None)


async def _control(workspace: Workspace, node: NodeSupply, size: int) -> None:
    """The same number of pods without the gang scheduler, in the same room."""
    await workspace.until(POD, lambda pods: _ended(pods) or None)
    await make_pod(workspace, "blocker-again", pod_spec(workspace, node, node.free - size + 1))
    await workspace.until(POD, lambda pods: bound(_of_name(pods, "blocker-again")) == 1 or None)
    for index in range(size):
        await make_pod(workspace, f"alone-{index}", pod_spec(workspace, node, 1), {GANG_LABEL: "alone"})
    counts = await _counts(workspace, "alone", size)
    assertion = whole_or_not_at_all(counts, size, workspace.options.window.seconds)
    workspace.control(control_of("the same pods without a gang scheduler", assertion))
    for pod in await workspace.api.list(POD, workspace.namespace):
        if pod["metadata"]["name"].startswith(("alone-", "blocker")):
            await workspace.api.delete(POD, pod["metadata"]["name"], workspace.namespace, at_once=True)


async def _two_gangs(workspace: Workspace, scheduler: GangScheduler, node: NodeSupply, size: int) -> None:
    large = max(2, int(node.free * _LARGE_SHARE)) if node.free <= _SIZE_MAX else size
    if large * 2 <= node.free:
        # They fit side by side, so they could not wait for each other.
        return
    names = ("first", "second")
    for name in names:
        await scheduler.start(workspace, _gang(workspace, name, node, large))

    def done(pods: list[Json]) -> bool | None:
        return all(_finished(pods, name, large) for name in names) or None

    await workspace.until(POD, done)
    pods = await workspace.api.list(POD, workspace.namespace)
    workspace.assert_that(both_finish({name: _finished(pods, name, large) for name in names}))


async def _counts(workspace: Workspace, name: str, size: int) -> list[int]:
    """The number of bound pods at the end of the window."""
    counts: list[int] = [0]

    def search(pods: list[Json]) -> None:
        counts.append(bound(named(pods, **{GANG_LABEL: name})))

    await workspace.until(POD, search, workspace.options.window)
    workspace.api.note("counts", {"group": name, "size": size, "bound": counts[-20:]})
    # What is bound in the end counts: pods of a gang are bound one after the other.
    return counts[-1:]


def _gang(workspace: Workspace, name: str, node: NodeSupply, size: int) -> Gang:
    return Gang(name, size, pod_spec(workspace, node, 1, MOMENT))


def _whole(pods: list[Json], name: str, size: int) -> int | None:
    return size if bound(named(pods, **{GANG_LABEL: name})) == size else None


def _of_name(pods: list[Json], name: str) -> list[Json]:
    return [pod for pod in pods if pod["metadata"]["name"] == name]


def _finished(pods: list[Json], name: str, size: int) -> bool:
    phases = [pod.get("status", {}).get("phase") for pod in named(pods, **{GANG_LABEL: name})]
    return phases.count("Succeeded") >= size


def _ended(pods: list[Json]) -> bool:
    return all(pod.get("status", {}).get("phase") in {"Succeeded", "Failed"} for pod in pods)


GANG_SCHEDULING: Final = Check(
    "gang_scheduling",
    CheckPlan(
        ("Queue or PodGroups of the gang scheduler", "4 Jobs or JobSets", "up to 18 Pods"),
        (
            "a gang scheduler: Kueue, JobSet with Kueue, Coscheduling or PodGroups",
            "a node with two free accelerators",
        ),
        60,
    ),
    _run,
    (
        "create jobs.batch",
        "delete jobs.batch",
        *dict.fromkeys(right for each in GANG_SCHEDULERS for right in each.rights),
    ),
)
