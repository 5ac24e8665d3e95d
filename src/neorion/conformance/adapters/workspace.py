"""The part of a cluster that one check may use: a namespace of its own, and everything in it labelled with the run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import anyio

from neorion.conformance.adapters.kinds import NAMESPACE, Json
from neorion.conformance.adapters.recording import RecordingApi
from neorion.conformance.adapters.removal import RUN_LABEL, empty_namespace, remove, still_there
from neorion.conformance.model import AcceleratorProfile, Assertion, Control
from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.keel.kube import ALL, Kind, ResourceExpired, Selector

T = TypeVar("T")

WINDOW: Final = Duration.of(seconds=10)
PATIENCE: Final = Duration.of(seconds=60)
_LOOK_EVERY: Final = Duration.of(ms=200)
# A Service account and the cluster's root certificate arrive in a new namespace a moment after it.
_READY_MOST: Final = Duration.of(seconds=20)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run. `hardware` states that real kubelets have real accelerators."""

    profile: AcceleratorProfile
    image: str = "docker.io/library/busybox:1.36"
    hardware: bool = False
    gateway_class: str = ""
    # Of those that the cluster has; empty for the first known one.
    gang_scheduler: str = ""
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
        await self._create_whole(NAMESPACE, {"metadata": meta})
        account = Kind(dict[str, Any], "ServiceAccount", "serviceaccounts", whole=True)
        await self.until(account, lambda found: found or None, _READY_MOST)

    async def create(
        self, kind: Kind[Json], name: str, body: Mapping[str, object], labels: Mapping[str, str] = {}
    ) -> Json:
        """An object of this check, labelled, in its namespace if it lives in one."""
        manifest = self.manifest(kind, name, body, labels)
        await self.open()
        if kind.namespaced:
            return await self.api.create(kind, manifest)
        self._made.append((kind, name))
        return await self._create_whole(kind, manifest)

    async def _create_whole(self, kind: Kind[Json], manifest: Mapping[str, object]) -> Json:
        """Interrupted, it waits for the answer: a request on its way could otherwise arrive after the clean-up."""
        created: list[Json] = []
        with anyio.CancelScope(shield=True):
            created.append(await self.api.create(kind, manifest))
        return created[0]

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
        """One watch, to its end or to the object that `look` finds."""
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
        except ResourceExpired:
            pass
        # Also after an orderly end: a server that ends every watch at once must not be asked without pause.
        await self.clock.sleep(_LOOK_EVERY)
        return None

    async def watch_over(self) -> None:
        """Keeps a watch open until it is cancelled.

        The watch breaks when the API server goes away, also when no request of the check is on its way. A check that
        was not observed all the time ends there: nothing would follow from it.
        """
        select = Selector(fields=f"metadata.name={self.namespace}")
        while True:
            await self._watched(NAMESPACE, lambda _: None, select)

    async def close(self) -> list[str]:
        """Removes what the check made, one after the other, and returns what would not go.

        Operators hold an object back while another one refers to it, and some do not look again: order matters.
        """
        if not self._is_open:
            return []
        left = await empty_namespace(self.api, self.clock, self.namespace)
        for kind, name in (*reversed(self._made), (NAMESPACE, self.namespace)):
            left += await remove(self.api, self.clock, kind, name)
            left += await still_there(self.api, self.clock, [(kind, name)])
        return left
