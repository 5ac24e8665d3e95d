"""Brings one server to what was decided about it. Each effect has its one place here, and is safe to repeat."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.controllers.cluster_facts import survey
from neorion.devservers.controllers.host_keys import give_host_key, host_key_is_gone
from neorion.devservers.decide import (
    FINALIZER,
    STOPPED_BECAUSE,
    Decision,
    DeleteServer,
    Edit,
    Observed,
    OperatorSettings,
    RevertFlavor,
    StartServer,
    StopServer,
    decide,
    host_key_may_be_gone,
    needs_cluster_facts,
    wants_host_key,
)
from neorion.devservers.decide.quota import QueueEntry
from neorion.devservers.model import Alert
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERS, STATEFUL_SETS, DevServerObject
from neorion.devservers.model.kueue import PODS_READY, WORKLOADS, Workload
from neorion.devservers.ports import HostKeyFactory
from neorion.keel.base import Denied, Duration, Instant, Invalid, NotFound, QuotaExceeded
from neorion.keel.clock import Clock
from neorion.keel.kube import KubeApi, MergePatch, ObjectKey, ServerError, StrategicMergePatch
from neorion.keel.kube.control import Applier, ContestedObject, EventRecorder, Fence
from neorion.keel.kube.core import POD

# Waits are measured in time that passes, ends are told in times of day: a clock that was set is noticed this late.
SLEEP_MAX = Duration.of(minutes=10)

_ANOTHER_KEY = (
    "The Secret with its host key was deleted, so the server gets another one: devctl ssh knows it, and other clients"
    " will say that the host key has changed."
)


def drop_alert(alert: Alert) -> None:
    """Does nothing, for operators without a channel for alerts."""
    del alert


@dataclass(frozen=True, slots=True)
class Writers:
    """Writers of the controller: the applier for objects, the recorder for Events, and the fenced API for the rest.

    `tell` delivers a warning to people. Without `keys` no server gets SSH.
    """

    api: KubeApi
    applier: Applier
    recorder: EventRecorder
    fence: Fence
    tell: Callable[[Alert], None] = drop_alert
    keys: HostKeyFactory | None = None


class DevServerController:
    """The reconcile of servers."""

    def __init__(
        self, cache: ClusterCache, writers: Writers, settings: OperatorSettings, clock: Clock
    ) -> None:
        self._cache = cache
        self._api = writers.api
        self._fence = writers.fence
        self._applier = writers.applier
        self._recorder = writers.recorder
        self._tell = writers.tell
        self._keys = writers.keys
        self._settings = settings
        self._clock = clock

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        seen = self._cache.observed(key)
        if seen is None:
            return None
        if needs_cluster_facts(seen):
            seen = replace(seen, around=await survey(self._api, seen))
        if seen.quota is not None and seen.starts_on_quota:
            seen = replace(seen, quota=await self._confirmed(seen.quota))
        now = to_datetime(self._clock.now())
        try:
            seen = await self._with_host_key(seen, now)
            seen = replace(seen, server=await self._ensure_finalizer(seen))
            decision = decide(seen, self._settings, now)
            if await self._apply_objects(decision):
                # The status waits for the next look, which sees what was made: told now, it would be out of date at once.
                return Duration(0)
            await self._fit(seen, decision)
        except (Denied, ServerError, Invalid, QuotaExceeded, ContestedObject) as error:
            if seen.server.meta.deleted is not None:
                raise
            # Its user has to know, and its end must still come.
            if isinstance(error, ContestedObject):
                seen = replace(seen, contested=error.sentence)
            else:
                seen = replace(seen, refused=error.sentence)
            decision = decide(seen, self._settings, now)
            await self._carry_out(seen, decision)
            if not isinstance(error, QuotaExceeded):
                raise
            # An exceeded quota is not a failure of the operator, so it is not raised.
            return requeue_after(decision.wake, now)
        await self._carry_out(seen, decision)
        return requeue_after(decision.wake, now)

    async def _confirmed(self, entry: QueueEntry) -> QueueEntry:
        """The request as the API server has it: a cache may still show one that was given back."""
        if entry.workload is None:
            return entry
        meta = entry.workload.meta
        current: Workload | None = None
        with suppress(NotFound):
            current = await self._api.get(WORKLOADS, meta.name, meta.namespace)
        return replace(entry, workload=current)

    async def _carry_out(self, seen: Observed, decision: Decision) -> None:
        """All but what the cluster may refuse."""
        server = seen.server
        for note in decision.notes:
            self._recorder.tell(DEVSERVERS, server, note.reason, note.text, warning=note.warning)
        if not decision.release:
            server = await self._applier.write_status(DEVSERVERS, server, decision.status)
        if decision.alert is not None:
            self._tell(decision.alert)
        await self._give_back_quota(server, decision.finished)
        if decision.ready_workload:
            await self._report_ready(server, decision.ready_workload)
        if decision.edit is not None:
            await self._edit(server, decision.edit)
        if decision.release:
            await self._release(server)

    async def _apply_objects(self, decision: Decision) -> bool:
        """Applies its objects. Whether there are new ones among them, and the cache show them."""
        made = False
        for manifest in decision.objects:
            kind, standing = self._cache.standing(manifest)
            await self._applier.apply(kind, manifest, standing)
            if standing is None:
                made = made or self._cache.standing(manifest)[1] is not None
        return made

    async def _with_host_key(self, seen: Observed, now: datetime) -> Observed:
        if self._keys is None:
            return seen
        if host_key_may_be_gone(seen, self._settings, now) and await host_key_is_gone(
            self._api, self._fence, seen.identity
        ):
            # Removed from the status first. After a crash in between, the server still gets a new key.
            seen = await self._with_status(seen, ssh_host_key=None)
            self._recorder.tell(DEVSERVERS, seen.server, "HostKeyChanged", _ANOTHER_KEY, warning=True)
        if not wants_host_key(seen, self._settings):
            return seen
        public = await give_host_key(self._api, self._fence, self._keys, seen.identity)
        return await self._with_status(seen, ssh_host_key=public)

    async def _with_status(self, seen: Observed, **fields: str | None) -> Observed:
        told = msgspec.structs.replace(seen.server.status, **fields)
        return replace(seen, server=await self._applier.write_status(DEVSERVERS, seen.server, told))

    async def _ensure_finalizer(self, seen: Observed) -> DevServerObject:
        """The finalizer comes before anything it guards."""
        if seen.server.meta.deleted is not None:
            return seen.server
        return await self._applier.set_finalizer(DEVSERVERS, seen.server, FINALIZER, wanted=True)

    async def _give_back_quota(self, server: DevServerObject, workloads: tuple[str, ...]) -> None:
        for name in workloads:
            self._fence.check()
            with suppress(NotFound):
                await self._api.delete(WORKLOADS, name, server.meta.namespace)

    async def _report_ready(self, server: DevServerObject, workload: str) -> None:
        """A field of its own in the status of the Workload, beside those that Kueue writes."""
        ready = {
            "type": PODS_READY,
            "status": "True",
            "reason": "Started",
            "message": "All Pods are ready.",
            "lastTransitionTime": to_datetime(self._clock.now()).isoformat().replace("+00:00", "Z"),
        }
        metadata = {"name": workload, "namespace": server.meta.namespace}
        body = {"metadata": metadata, "status": {"conditions": [ready]}}
        self._fence.check()
        with suppress(NotFound):
            await self._api.apply(
                WORKLOADS.raw, body, self._applier.manager, force=True, subresource="status"
            )

    async def _release(self, server: DevServerObject) -> None:
        try:
            await self._applier.set_finalizer(DEVSERVERS, server, FINALIZER, wanted=False)
        except NotFound:
            return  # released before, and not yet heard of

    async def _fit(self, seen: Observed, decision: Decision) -> None:
        """Changes what runs without another pod, or takes the pods away where no Deployment can be written."""
        meta = seen.server.meta
        for pod in seen.working_pods if decision.resize is not None else ():
            self._fence.check()
            containers = [{"name": pod.spec.containers[0].name, "resources": decision.resize}]
            patch = StrategicMergePatch({"spec": {"containers": containers}})
            await self._api.patch(POD, pod.meta.name, patch, meta.namespace, "resize")
        if decision.halt and seen.body is not None and seen.body.spec.replicas != 0:
            self._fence.check()
            kind = DEPLOYMENTS if seen.distributed is None else STATEFUL_SETS
            await self._api.scale(kind, meta.name, 0, meta.namespace)

    async def _edit(self, server: DevServerObject, edit: Edit) -> None:
        if isinstance(edit, DeleteServer):
            await self._applier.delete(DEVSERVERS, server)
            return
        meta: dict[str, Any] = {"resourceVersion": server.meta.resource_version}
        match edit:
            case StopServer(reason):
                spec: dict[str, Any] = {"running": False}
                meta["annotations"] = {STOPPED_BECAUSE: reason.value}
            case StartServer():
                spec = {"running": True}
                meta["annotations"] = {STOPPED_BECAUSE: None}
            case RevertFlavor(flavor):
                spec = {"flavor": flavor}
        self._fence.check()
        await self._api.patch(
            DEVSERVERS, server.meta.name, MergePatch({"metadata": meta, "spec": spec}), server.meta.namespace
        )


def to_datetime(now: Instant) -> datetime:
    """Whole seconds, as the API keeps its times: a status that was read back equals the one that was written."""
    return datetime.fromtimestamp(now.ns // 1_000_000_000, UTC)


def requeue_after(wake: datetime | None, now: datetime) -> Duration | None:
    if wake is None:
        return None
    return Duration.of(seconds=min(SLEEP_MAX.seconds, max(0.0, (wake - now).total_seconds())))
