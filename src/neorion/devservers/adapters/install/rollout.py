"""Waiting for what a cluster does by itself."""

from collections.abc import Callable
from typing import Final, TypeVar

import anyio

from neorion.keel.base import Deadline, Duration, NotFound
from neorion.keel.kube import Kind, KubeObject, ObjectKey, Selector
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import DEPLOYMENT, POD, STATEFUL_SET, Deployment, Pod, StatefulSet

T = TypeVar("T", bound=KubeObject)

# Polled instead of watched: it takes seconds, and no cache must be kept.
EVERY: Final = Duration.of(ms=250)


async def until(client: Client, kind: Kind[T], key: ObjectKey, done: Callable[[T | None], bool]) -> None:
    """Returns when the object is as it should be; None is an object that is not there. Who has no patience cancels it."""
    while not done(await _seen(client, kind, key)):
        await client.transport.clock.sleep(EVERY)


async def _seen(client: Client, kind: Kind[T], key: ObjectKey) -> T | None:
    try:
        return await client.get(kind, key.name, key.namespace)
    except NotFound:
        # Also where the whole kind is gone.
        return None


async def until_rolled_out(
    client: Client, kind: Kind[Deployment] | Kind[StatefulSet], key: ObjectKey, patience: Duration
) -> None:
    """Returns when every replica of a workload is the newest and available."""
    with anyio.move_on_after(patience.seconds):
        if kind.type is StatefulSet:
            await until(client, STATEFUL_SET, key, _is_set_rolled_out)
        else:
            await until(client, DEPLOYMENT, key, _is_rolled_out)
        return
    raise Deadline(
        "devservers.not_rolled_out",
        f"{key.name} was not available after {patience}{await _why(client, key)}.",
        hint=f"Look at it: kubectl describe pods --namespace {key.namespace}",
    )


def _is_rolled_out(deployment: Deployment | None) -> bool:
    if deployment is None:
        return False
    wanted, status = deployment.spec.replicas or 0, deployment.status
    return (
        status.observed_generation >= deployment.meta.generation
        and status.updated_replicas == status.replicas == wanted
        and status.available_replicas == wanted
    )


def _is_set_rolled_out(workload: StatefulSet | None) -> bool:
    if workload is None:
        return False
    replicas, status = workload.spec.replicas or 0, workload.status
    return (
        status.observed_generation >= workload.meta.generation
        and status.current_revision == status.update_revision
        and status.ready_replicas == status.replicas == replicas
    )


async def _why(client: Client, key: ObjectKey) -> str:
    """Reason of the first pod that waits, as the end of a sentence."""
    pods = await client.list(POD, key.namespace, Selector(labels=f"app={key.name}"))
    reasons = (_waits_for(pod) for pod in pods.items)
    return next((f": {reason}" for reason in reasons if reason), "")


def _waits_for(pod: Pod) -> str:
    for container in pod.status.containers:
        waiting = container.state.waiting
        if waiting is not None:
            return " ".join(filter(None, (waiting.reason, waiting.message)))
    scheduled = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
    return scheduled.message if scheduled is not None and not scheduled.holds else ""
