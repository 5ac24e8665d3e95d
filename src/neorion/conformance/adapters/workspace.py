"""The part of a cluster that one check may use: a namespace of its own, and everything in it labelled with the run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import anyio

from neorion.conformance.adapters.kinds import CLUSTER_WIDE, JOB, NAMESPACE, POD, RESOURCE_CLAIM, Json
from neorion.conformance.adapters.recording import RecordingApi
from neorion.conformance.model import AcceleratorProfile, Assertion, Control
from neorion.keel.base import Duration, Error, NotFound, Retry
from neorion.keel.clock import Clock
from neorion.keel.kube import ALL, Kind, ResourceExpired, Selector, UnknownKind

T = TypeVar("T")

# On everything that a run creates; its value is the id of the run.
RUN_LABEL: Final = "conformance.neorion.dev/run"
WINDOW: Final = Duration.of(seconds=10)
PATIENCE: Final = Duration.of(seconds=60)
_GONE_MOST: Final = Duration.of(seconds=30)
_LOOK_EVERY: Final = Duration.of(ms=200)
# A Service account and the cluster's root certificate arrive in a new namespace a moment after it.
_READY_MOST: Final = Duration.of(seconds=20)


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose about a run. `hardware` states that real kubelets have real accelerators."""

    profile: AcceleratorProfile
    image: str = "docker.io/library/busybox:1.36"
    hardware: bool = False
    gateway_class: str = ""
    prometheus: str = ""
    # Of the window in which nothing may happen.
    window: Duration = WINDOW
    # How long to wait for what has to happen.
    patience: Duration = PATIENCE


@dataclass(slots=True)
class Workspace:
    """One check's access to the cluster."""

    api: RecordingApi
    clock: Clock
    run: str
    namespace: str
    options: Options
    assertions: list[Assertion] = field(default_factory=list[Assertion])
    controls: list[Control] = field(default_factory=list[Control])
    _made: list[tuple[Kind[Json], str]] = field(default_factory=list[tuple[Kind[Json], str]])
    _is_open: bool = False

    @property
    def pause(self) -> Duration:
        """Between two looks at what cannot be watched."""
        return _LOOK_EVERY

    @property
    def labels(self) -> dict[str, str]:
        return {RUN_LABEL: self.run}

    async def open(self) -> None:
        """Makes the namespace. The first object of the check that lives in it does so, too."""
        if self._is_open:
            return
        # Before it is there: an interruption right after must not leave it.
        self._is_open = True
        meta = {"name": self.namespace, "labels": self.labels}
        await self.api.create(NAMESPACE, {"metadata": meta})
        account = Kind(dict[str, Any], "ServiceAccount", "serviceaccounts", whole=True)
        await self.until(account, lambda found: found or None, _READY_MOST)

    async def create(
        self, kind: Kind[Json], name: str, body: Mapping[str, object], labels: Mapping[str, str] = {}
    ) -> Json:
        """An object of this check, labelled, in its namespace if it lives in one."""
        manifest = self.manifest(kind, name, body, labels)
        await self.open()
        if not kind.namespaced:
            self._made.append((kind, name))
        return await self.api.create(kind, manifest)

    def manifest(
        self, kind: Kind[Json], name: str, body: Mapping[str, object], labels: Mapping[str, str] = {}
    ) -> Json:
        meta: Json = {"name": name, "labels": {**labels, **self.labels}}
        meta |= {"namespace": self.namespace} if kind.namespaced else {}
        given: Any = body.get("metadata", {})
        return {**body, "metadata": {**given, **meta}}

    def assert_that(self, assertion: Assertion) -> bool:
        self.assertions.append(assertion)
        self.api.note(
            "assertion", {"name": assertion.name, "held": assertion.held, "detail": assertion.detail}
        )
        return assertion.held

    def control(self, control: Control) -> bool:
        self.controls.append(control)
        self.api.note(
            "control", {"name": control.name, "tripped": control.tripped, "failure": control.failure}
        )
        return control.tripped

    async def until(
        self,
        kind: Kind[Json],
        look: Callable[[list[Json]], T | None],
        within: Duration | None = None,
        select: Selector = ALL,
    ) -> T | None:
        """Watches until `look` finds something in the objects there are; None when the time is over.

        With a short time this is also how a check sees that nothing happens: the window is as long as `within`.
        """
        limit = within or self.options.patience
        began = self.clock.monotonic()
        found: T | None = None
        with anyio.move_on_after(limit.seconds):
            while found is None:
                found = await self._watched(kind, look, select)
        lasted = round(self.clock.monotonic() - began, 3)
        self.api.note("window", {"resource": kind.resource, "seconds": lasted, "found": found is not None})
        return found

    async def _watched(
        self, kind: Kind[Json], look: Callable[[list[Json]], T | None], select: Selector
    ) -> T | None:
        """One watch, to its end or to what is looked for."""
        there: dict[str, Json] = {}
        synced = False
        namespace = self.namespace if kind.namespaced else ""
        try:
            async with self.api.watch(kind, namespace, select) as events:
                async for event, thing in events:
                    if event == "SYNCED":
                        synced = True
                    elif event == "DELETED":
                        there.pop(thing["metadata"]["uid"], None)
                    else:
                        there[thing["metadata"]["uid"]] = thing
                    if synced and (found := look(list(there.values()))) is not None:
                        return found
        except (ResourceExpired, Retry):
            await self.clock.sleep(_LOOK_EVERY)
        return None

    async def close(self) -> list[str]:
        """Removes what the check made, one after the other, and returns what would not go.

        Operators hold an object back while another one refers to it, and some do not look again: order matters.
        """
        if not self._is_open:
            return []
        left = [problem for kind in (JOB, POD, RESOURCE_CLAIM) for problem in await self._empty(kind)]
        for kind, name in (*reversed(self._made), (NAMESPACE, self.namespace)):
            left += await remove(self.api, kind, name)
            left += await still_there(self.api, self.clock, [(kind, name)])
        return left

    async def _empty(self, kind: Kind[Json]) -> list[str]:
        """Pods before claims before the namespace: a reserved claim has a finalizer that waits for its pods."""
        left: list[str] = []
        try:
            items = await self.api.list(kind, self.namespace)
        except NotFound:
            return []
        except Error as error:
            return [f"{kind.name}s in {self.namespace}: {error.sentence}"]
        for item in items:
            left += await remove(self.api, kind, item["metadata"]["name"], self.namespace)
        return left


async def remove(api: RecordingApi, kind: Kind[Json], name: str, namespace: str = "") -> list[str]:
    try:
        await api.delete(kind, name, namespace, at_once=kind is POD)
    except NotFound:
        return []
    except Error as error:
        return [f"{kind.name} {name}: {error.sentence}"]
    return []


async def still_there(api: RecordingApi, clock: Clock, things: Sequence[tuple[Kind[Json], str]]) -> list[str]:
    """Waits until the objects are gone. Names those that stay."""
    left = list(things)
    with anyio.move_on_after(_GONE_MOST.seconds):
        while left:
            left = [each for each in left if await _exists(api, *each)]
            if left:
                await clock.sleep(_LOOK_EVERY)
    return [f"{kind.name} {name} is still there." for kind, name in left]


async def _exists(api: RecordingApi, kind: Kind[Json], name: str) -> bool:
    try:
        await api.get(kind, name)
    except NotFound:
        return False
    except Error:
        return True
    return True


async def clean_up(api: RecordingApi, clock: Clock, run: str = "") -> tuple[list[str], list[str]]:
    """Removes everything that runs have left, or that one run has. Returns what was removed and what stays."""
    select = Selector(labels=f"{RUN_LABEL}={run}" if run else RUN_LABEL)
    found: list[tuple[Kind[Json], str]] = []
    problems: list[str] = []
    for kind in (*CLUSTER_WIDE, NAMESPACE):
        try:
            items = await api.list(kind, select=select)
        except UnknownKind:
            continue
        except NotFound:
            continue
        for item in items:
            name = item["metadata"]["name"]
            if kind is NAMESPACE:
                problems += await _empty_namespace(api, name)
            problems += await remove(api, kind, name)
            found.append((kind, name))
    stays = [*problems, *(await still_there(api, clock, found))]
    return [f"{kind.name} {name}" for kind, name in found], stays


async def _empty_namespace(api: RecordingApi, namespace: str) -> list[str]:
    problems: list[str] = []
    for kind in (JOB, POD, RESOURCE_CLAIM):
        try:
            items = await api.list(kind, namespace)
        except NotFound:
            continue
        for item in items:
            problems += await remove(api, kind, item["metadata"]["name"], namespace)
    return problems
