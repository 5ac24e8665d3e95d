"""Keeps Envoy's configuration and the conditions of Gateways, routes and pools as the API server's objects demand."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from neorion.drydock.addons.inference_gateway import envoy
from neorion.drydock.addons.inference_gateway.decide import (
    Snapshot,
    backends,
    gateways_of,
    picker_of,
    pools_of,
    ports,
    unresolved,
)
from neorion.drydock.addons.inference_gateway.kinds import (
    ENDPOINT_SLICE,
    GATEWAY,
    GATEWAY_GROUP,
    HTTP_ROUTE,
    INFERENCE_POOL,
    SERVICE_LABEL,
    EndpointSlice,
    Gateway,
    HttpRoute,
    InferencePool,
)
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import Condition, Kind, KubeApi, KubeObject, MergePatch, ObjectKey, time_text
from neorion.keel.kube.control import Controller, InformerFactory, Operator
from neorion.keel.kube.core import POD

CLASS: Final = "inference"
CONTROLLER: Final = "drydock.neorion.dev/inference-gateway"
Json = dict[str, Any]


class GatewayController:
    """One key stands for everything: a pool may be behind many Gateways, and Envoy has one configuration."""

    def __init__(self, api: KubeApi, folder: Path, address: str, clock: Clock, rng: Rng) -> None:
        self._api = api
        self._folder = folder
        self._address = address
        self._clock = clock
        informers = InformerFactory(api, clock, rng)
        self._gateways = informers.of(GATEWAY)
        self._routes = informers.of(HTTP_ROUTE)
        self._pools = informers.of(INFERENCE_POOL)
        self._pods = informers.of(POD)
        self._slices = informers.of(ENDPOINT_SLICE)
        controller = Controller("inference gateway", self._reconcile, clock, rng, workers=1)
        controller.watch(self._gateways, _one_key)
        controller.watch(self._routes, _one_key)
        controller.watch(self._pools, _one_key)
        controller.watch(self._pods, _one_key)
        controller.watch(self._slices, _one_key)
        self.operator = Operator(informers, [controller])

    async def _reconcile(self, _key: str) -> Duration | None:
        gateways = tuple(each for each in self._gateways if each.spec.gateway_class_name == CLASS)
        pickers = _ready_by_service(self._slices)
        snapshot = Snapshot(gateways, tuple(self._routes), tuple(self._pools), tuple(self._pods), pickers)
        pools = backends(snapshot)
        # Clusters first: a listener that names one that is not there is refused.
        self._write(envoy.CLUSTERS, envoy.clusters(pools))
        self._write(envoy.LISTENERS, envoy.listeners(self._address, ports(snapshot), pools))
        for gateway in gateways:
            await self._report_gateway(gateway, snapshot)
        for route in snapshot.routes:
            await self._report_route(route, snapshot)
        for pool in snapshot.pools:
            await self._report_pool(pool, snapshot)
        return None

    def _write(self, name: str, content: Json) -> None:
        """Replaces a file as a whole: Envoy reads it again when another one takes its place."""
        text, path = json.dumps(content), self._folder / name
        if not path.exists() or path.read_text() != text:
            partial = path.with_suffix(".part")
            partial.write_text(text)
            partial.replace(path)

    async def _report_gateway(self, gateway: Gateway, snapshot: Snapshot) -> None:
        wanted = self._conditions(gateway, {"Accepted": "", "Programmed": ""})
        if _same(gateway.status.conditions, wanted):
            return
        attached = sum(gateway.meta.key in gateways_of(route) for route in snapshot.routes)
        kinds = [{"group": GATEWAY_GROUP, "kind": "HTTPRoute"}]
        listeners = [
            {"name": each.name, "attachedRoutes": attached, "supportedKinds": kinds, "conditions": wanted}
            for each in gateway.spec.listeners
        ]
        addresses = [{"type": "IPAddress", "value": self._address}]
        status = {"conditions": wanted, "addresses": addresses, "listeners": listeners}
        await self._patch(GATEWAY, gateway, status)

    async def _report_route(self, route: HttpRoute, snapshot: Snapshot) -> None:
        mine = gateways_of(route) & {each.meta.key for each in snapshot.gateways}
        problem = unresolved(route, snapshot.pools)
        conditions = self._conditions(route, {"Accepted": "", "ResolvedRefs": problem})
        await self._report_parents(HTTP_ROUTE, route, mine, conditions)

    async def _report_pool(self, pool: InferencePool, snapshot: Snapshot) -> None:
        routes = [route for route in snapshot.routes if pool.meta.key in pools_of(route)]
        mine = {key for route in routes for key in gateways_of(route)}
        mine &= {each.meta.key for each in snapshot.gateways}
        problem = "" if picker_of(pool) in snapshot.pickers else "InvalidExtensionRef"
        conditions = self._conditions(pool, {"Accepted": "", "ResolvedRefs": problem})
        await self._report_parents(INFERENCE_POOL, pool, mine, conditions)

    async def _report_parents(
        self,
        kind: Kind[Any],
        thing: HttpRoute | InferencePool,
        gateways: set[ObjectKey],
        conditions: list[Json],
    ) -> None:
        """The entries of this controller; those of others stay as they are."""
        present = [each for each in thing.status.parents if each.controller_name == CONTROLLER]
        known = {
            ObjectKey(each.parent_ref.namespace or thing.meta.namespace, each.parent_ref.name)
            for each in present
        }
        if known == gateways and all(_same(each.conditions, conditions) for each in present):
            return
        found: Json = await self._api.get(kind.raw, thing.meta.name, thing.meta.namespace)
        others = [
            each
            for each in found.get("status", {}).get("parents", ())
            if each.get("controllerName") != CONTROLLER
        ]
        own = [
            {
                "parentRef": {"name": key.name, "namespace": key.namespace},
                "controllerName": CONTROLLER,
                "conditions": conditions,
            }
            for key in sorted(gateways)
        ]
        await self._patch(kind, thing, {"parents": [*others, *own]})

    def _conditions(self, thing: KubeObject, problems: dict[str, str]) -> list[Json]:
        """A condition for each type; its problem is the reason why it does not hold."""
        now = time_text(self._clock.now())
        return [
            {
                "type": name,
                "status": "False" if problem else "True",
                "reason": problem or name,
                "message": "",
                "observedGeneration": thing.meta.generation,
                "lastTransitionTime": now,
            }
            for name, problem in problems.items()
        ]

    async def _patch(self, kind: Kind[Any], thing: KubeObject, status: Json) -> None:
        meta = thing.meta
        await self._api.patch(kind, meta.name, MergePatch({"status": status}), meta.namespace, "status")


def _one_key(_object: KubeObject) -> Iterable[str]:
    return (CLASS,)


def _ready_by_service(slices: Iterable[EndpointSlice]) -> dict[ObjectKey, tuple[str, ...]]:
    found: dict[ObjectKey, tuple[str, ...]] = {}
    for each in slices:
        key = ObjectKey(each.meta.namespace, each.meta.labels.get(SERVICE_LABEL, ""))
        found[key] = (*found.get(key, ()), *each.ready)
    return found


def _same(present: Iterable[Condition], wanted: Iterable[Json]) -> bool:
    """Returns true if nothing but the time differs."""
    return {(each.type, each.status, each.reason, each.observed_generation) for each in present} >= {
        (each["type"], each["status"], each["reason"], each["observedGeneration"]) for each in wanted
    }
