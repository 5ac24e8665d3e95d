"""Removal of what runs have created, in the order in which it goes, past an API server that is away for a while."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio

from neorion.conformance.adapters.kinds import CLUSTER_WIDE, JOB, NAMESPACE, POD, RESOURCE_CLAIM, Json
from neorion.conformance.adapters.recording import RecordingApi
from neorion.keel.base import Duration, Error, NotFound, Retry
from neorion.keel.clock import Clock
from neorion.keel.kube import Kind, Selector, UnknownKind

# On everything that a run creates; its value is the id of the run.
RUN_LABEL: Final = "conformance.neorion.dev/run"
# How long an object may take to go.
GONE_MOST: Final = Duration.of(seconds=30)
_LOOK_EVERY: Final = Duration.of(ms=200)
# Pods before claims before the namespace: a reserved claim has a finalizer that waits for its pods.
_FIRST: Final = (JOB, POD, RESOURCE_CLAIM)


async def remove(
    api: RecordingApi, clock: Clock, kind: Kind[Json], name: str, namespace: str = ""
) -> list[str]:
    """Deletes an object. Returns the reason if that is not possible."""
    return await _persistently(
        clock, f"{kind.name} {name}", lambda: api.delete(kind, name, namespace, at_once=kind is POD)
    )


async def empty_namespace(api: RecordingApi, clock: Clock, namespace: str) -> list[str]:
    """Deletes the objects in a namespace whose order matters. Returns the problems."""
    problems: list[str] = []
    for kind in _FIRST:

        async def delete_all(kind: Kind[Any] = kind) -> None:
            for item in await api.list(kind, namespace):
                with suppress(NotFound):
                    await api.delete(kind, item["metadata"]["name"], namespace, at_once=kind is POD)

        problems += await _persistently(clock, f"{kind.name}s in {namespace}", delete_all)
    return problems


async def still_there(api: RecordingApi, clock: Clock, things: Sequence[tuple[Kind[Json], str]]) -> list[str]:
    """Waits until the objects are gone. Names those that stay."""
    left = list(things)
    with anyio.move_on_after(GONE_MOST.seconds):
        while left:
            left = [each for each in left if await _exists(api, *each)]
            if left:
                await clock.sleep(_LOOK_EVERY)
    return [f"{kind.name} {name} is still there." for kind, name in left]


async def clean_up(api: RecordingApi, clock: Clock, run: str = "") -> tuple[list[str], list[str]]:
    """Removes everything that runs have left, or that one run has. Returns what was removed and what stays."""
    select = Selector(labels=f"{RUN_LABEL}={run}" if run else RUN_LABEL)
    found: list[tuple[Kind[Json], str]] = []
    problems: list[str] = []
    for kind in (*CLUSTER_WIDE, NAMESPACE):
        try:
            items = await api.list(kind, select=select)
        except (UnknownKind, NotFound):
            continue
        for item in items:
            name = item["metadata"]["name"]
            if kind is NAMESPACE:
                problems += await empty_namespace(api, clock, name)
            problems += await remove(api, clock, kind, name)
            found.append((kind, name))
    stays = [*problems, *(await still_there(api, clock, found))]
    return [f"{kind.name} {name}" for kind, name in found], stays


async def _persistently(clock: Clock, what: str, call: Callable[[], Awaitable[None]]) -> list[str]:
    """Repeats a deletion while the server is away. Returns the reason if it does not succeed."""
    problem = ""
    with anyio.move_on_after(GONE_MOST.seconds):
        while True:
            try:
                await call()
            except NotFound:
                return []
            except Retry as error:
                problem = error.sentence
                await clock.sleep(_LOOK_EVERY)
            except Error as error:
                return [f"{what}: {error.sentence}"]
            else:
                return []
    return [f"{what}: {problem}"]


async def _exists(api: RecordingApi, kind: Kind[Json], name: str) -> bool:
    try:
        await api.get(kind, name)
    except NotFound:
        return False
    except Error:
        return True
    return True
