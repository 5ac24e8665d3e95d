"""Waiting for a server, told step by step from a watch."""

from collections.abc import Callable
from contextlib import aclosing, suppress

import anyio
from msgspec import Struct

from neorion.devservers.client.api import DevServerApi
from neorion.devservers.client.progress import (
    ProgressStep,
    condition_of,
    is_observed,
    is_ready,
    is_refused,
    obstacle,
    steps,
)
from neorion.devservers.client.server_diagnosis import Diagnosis, diagnose, revert_hint
from neorion.devservers.model import ConditionType, Phase
from neorion.devservers.model.kube_types import DevServerObject
from neorion.keel.base import Conflict, Deadline, Duration, Error, NoCapacity, NotFound, Terminal

# A GPU node that has to be bought first takes minutes. After this a person should investigate.
PATIENCE = Duration.of(minutes=15)


class Progress(Struct, frozen=True):
    """Progress of a server: its steps, and a sentence about the current obstacle."""

    steps: tuple[ProgressStep, ...]
    obstacle: str = ""


Tell = Callable[[Progress], None]
# Interval between two requests for Events: long enough to read the last line.
EVENT_POLL = Duration.of(seconds=5)


def ignore_progress(progress: Progress) -> None:
    """Does nothing, for callers that show no progress."""
    del progress


async def wait_ready(
    fleet: DevServerApi,
    name: str,
    tell: Tell = ignore_progress,
    patience: Duration = PATIENCE,
    flavor: str = "",
) -> DevServerObject:
    """Returns when the server can be used. Raises what stands in the way of that; the server stays either way.

    With `flavor`, on that one: the operator takes a change back for which there is no room.
    """
    way = _ReadyWait(fleet, name, tell, flavor)
    outcome: DevServerObject | Error | None = None
    with anyio.move_on_after(patience.seconds):
        async with anyio.create_task_group() as group:
            group.start_soon(way.listen)
            outcome = await way.walk()
            group.cancel_scope.cancel()
    if isinstance(outcome, Error):
        raise outcome
    if outcome is not None:
        return outcome
    why = await way.why()
    raise Deadline(
        "devservers.not_ready",
        f"{name} was not ready after {patience}: {f'it is not on {flavor} yet.' if why.well else why.sentence}",
        hint=why.hint or f"devctl doctor {name}",
    )


class _ReadyWait:
    """A server on its way: its versions as they come, and what is said of it between them."""

    def __init__(self, fleet: DevServerApi, name: str, tell: Tell, flavor: str) -> None:
        self._fleet = fleet
        self._name = name
        self._tell = tell
        self._flavor = flavor
        self.last: DevServerObject | None = None

    async def walk(self) -> DevServerObject | Error:
        """To its end, good or bad: raised beside the listener, an error would come out of both as a group."""
        try:
            async with aclosing(self._fleet.versions(self._name)) as versions:
                async for self.last in versions:
                    server = _require_exists(self.last, self._name)
                    _raise_if_failed(server, self._flavor)
                    there = _on(server, self._flavor)
                    # A machine that is ready before the change is done is the one that goes.
                    self._tell(
                        Progress(steps(server) if there or not server.status.ready else (), obstacle(server))
                    )
                    if is_ready(server) and there:
                        return server
        except Error as error:
            return error
        raise AssertionError("versions never end")

    async def why(self) -> Diagnosis:
        if self.last is None:
            return Diagnosis(False, "nothing is known of it.")
        try:
            return await self._fleet.diagnose(self.last)
        except Error:
            return diagnose(self.last)

    async def listen(self) -> None:
        """Shows warnings that only Events contain, e.g. that a volume cannot be attached."""
        while True:
            await self._fleet.clock.sleep(EVENT_POLL)
            server = self.last
            if server is None or server.status.ready or obstacle(server):
                continue
            # Who may not read them waits without.
            with suppress(Error):
                if complaint := await self._fleet.warning(server):
                    self._tell(Progress(steps(server), complaint))


async def wait_deleted(fleet: DevServerApi, name: str, patience: Duration = PATIENCE) -> None:
    """Returns when the server is deleted and nothing but its home is left."""
    with anyio.move_on_after(patience.seconds):
        async with aclosing(fleet.versions(name)) as versions:
            async for server in versions:
                if server is None:
                    return
    raise Deadline(
        "devservers.not_gone", f"{name} was still there after {patience}.", hint=f"Run: devctl events {name}."
    )


async def until_stopped(fleet: DevServerApi, name: str, patience: Duration = PATIENCE) -> DevServerObject:
    with anyio.move_on_after(patience.seconds):
        async with aclosing(fleet.versions(name)) as versions:
            async for last in versions:
                server = _require_exists(last, name)
                if is_observed(server) and server.status.phase in {Phase.STOPPED, Phase.EXPIRED}:
                    return server
    raise Deadline(
        "devservers.not_stopped", f"{name} still ran after {patience}.", hint=f"Run: devctl doctor {name}."
    )


def _require_exists(server: DevServerObject | None, name: str) -> DevServerObject:
    if server is None or server.meta.deleted is not None:
        raise NotFound(
            "devservers.deleted", f"{name} was deleted.", hint=f"Make it again: devctl create {name}"
        )
    return server


def _raise_if_failed(server: DevServerObject, flavor: str) -> None:
    name = server.meta.name
    if is_refused(server) or (is_observed(server) and server.status.phase is Phase.FAILED):
        found = diagnose(server)
        raise Terminal("devservers.failed", found.sentence, hint=found.hint or f"devctl events {name}")
    if not server.spec.running:
        raise Conflict(
            "devservers.stopped", f"{name} was stopped meanwhile.", hint=f"Run: devctl start {name}."
        )
    if flavor and server.spec.flavor != flavor:
        raise NoCapacity(
            "devservers.taken_back",
            f"There was no room for {name} on {flavor}: it is on {server.spec.flavor} again.",
            hint="Try another flavor, or later.",
            scope=flavor,
        )
    told = condition_of(server, ConditionType.RESIZING)
    if flavor and is_observed(server) and told is not None and told.status == "False" and told.message:
        before = server.status.flavor.applied if server.status.flavor else "its flavor"
        raise NoCapacity(
            "devservers.held",
            told.message,
            hint=revert_hint(name, before),
            scope=flavor,
        )


def _on(server: DevServerObject, flavor: str) -> bool:
    """A change of flavor is done when nothing of the old one is remembered."""
    applied = server.status.flavor
    return not flavor or (applied is not None and applied.applied == flavor and applied.previous is None)
