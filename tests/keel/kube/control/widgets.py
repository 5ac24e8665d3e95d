"""A small operator for tests: every Widget gets a ConfigMap that says its size, and a status that says that it has one."""

from collections import Counter
from dataclasses import dataclass

from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import KubeApi, ObjectKey, ObjectMeta, OwnerReference
from neorion.keel.kube.control import (
    UNFENCED,
    Applier,
    Controller,
    Election,
    EventRecorder,
    InformerFactory,
    LeaderLeaseTiming,
    Operator,
    ReconcileOutcome,
    generation_changed,
    owner_key,
    self_key,
)
from neorion.keel.kube.core import CONFIG_MAP
from tests.contracts.kube_api import WIDGET, Widget, WidgetStatus

LEASE_KEY = ObjectKey("default", "widgets")
# Short: for virtual time alone, in which no machine is busy.
TENURE = LeaderLeaseTiming(Duration.of(seconds=3), Duration.of(seconds=2), Duration.of(ms=500))
FINALIZER = "contract.neorion.dev/widget"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an operator gets from outside."""

    api: KubeApi
    clock: Clock
    rng: Rng
    identity: str = "only"


class Writes(Counter[str]):
    """Counts the writes of an applier by verb."""

    def wrote(self, verb: str, resource: str) -> None:
        self[f"{verb} {resource}"] += 1

    def worked(self, controller: str, ending: ReconcileOutcome, waited: float, took: float) -> None: ...

    def queued(self, controller: str, ready: int, failing: int) -> None: ...

    def unreadable(self, resource: str, count: int) -> None:
        self[f"unreadable {resource}"] = count


class WidgetOperator:
    """The reconciler with its mirrors and its hand; `operator` runs it."""

    def __init__(
        self, around: Surroundings, *, tenure: LeaderLeaseTiming | None = None, namespace: str = ""
    ) -> None:
        api, clock, rng = around.api, around.clock, around.rng
        self.informers = InformerFactory(api, clock, rng)
        self.widgets = self.informers.of(WIDGET, namespace)
        self.configs = self.informers.of(CONFIG_MAP, namespace)
        lease = ObjectKey(namespace, "widgets") if namespace else LEASE_KEY
        self.election = Election(api, lease, around.identity, clock, rng, tenure) if tenure else None
        self.writes = Writes()
        self.applier = Applier(api, "widgets", self.informers, self.election or UNFENCED, self.writes)
        self.recorder = EventRecorder(api, "widgets", around.identity, clock)
        self.controller = Controller("widgets", self.reconcile, clock, rng)
        self.controller.watch(self.widgets, self_key, generation_changed)
        self.controller.watch(self.configs, owner_key(WIDGET))
        self.operator = Operator(self.informers, [self.controller], self.election, self.recorder)

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        widget = self.widgets.get(key)
        if widget is None:
            return None
        config = self.configs.get(key)
        if widget.meta.deleted:
            await self.applier.delete(CONFIG_MAP, config)
            await self.applier.set_finalizer(WIDGET, widget, FINALIZER, wanted=False)
            return None
        await self.applier.apply(CONFIG_MAP, wanted_config(widget), config)
        await self.applier.write_status(WIDGET, widget, WidgetStatus(ready=widget.spec.size))
        return None


def wanted_config(widget: Widget) -> dict[str, object]:
    meta = widget.meta
    owner = OwnerReference(WIDGET.api_version, WIDGET.name, meta.name, meta.uid, controller=True)
    return CONFIG_MAP.manifest(
        {
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "labels": {"widget": meta.name},
                "ownerReferences": [
                    {
                        "apiVersion": owner.api_version,
                        "kind": owner.kind,
                        "name": owner.name,
                        "uid": owner.uid,
                    }
                ],
            },
            "data": {"size": str(widget.spec.size)},
        }
    )


def widget(name: str, size: int, namespace: str = "default", **meta: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": namespace, **meta}, "spec": {"size": size}}


def named(name: str, namespace: str = "default") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)
