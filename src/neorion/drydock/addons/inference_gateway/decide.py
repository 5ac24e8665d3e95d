"""From Gateways, routes and pools to what Envoy serves, and to the conditions that their owners read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from neorion.drydock.addons.inference_gateway.kinds import (
    POOL_GROUP,
    BackendReference,
    Gateway,
    HttpRoute,
    InferencePool,
)
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.core import Pod


@dataclass(frozen=True, slots=True)
class PoolBackend:
    """A pool that requests can reach: its model servers, and the pickers that choose among them."""

    name: str
    servers: tuple[str, ...]
    pickers: tuple[str, ...]
    fails_open: bool


@dataclass(frozen=True, slots=True)
class ServedRoute:
    """The hosts of one rule, and the weight of each of its pools."""

    hosts: tuple[str, ...]
    weights: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ServedPort:
    """One port, and the routes of all Gateways that listen there."""

    port: int
    routes: tuple[ServedRoute, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects that decide what is served. `pickers` are the ready addresses by Service."""

    gateways: tuple[Gateway, ...]
    routes: tuple[HttpRoute, ...]
    pools: tuple[InferencePool, ...]
    pods: tuple[Pod, ...]
    pickers: Mapping[ObjectKey, tuple[str, ...]]


_ANY_HOST: Final = ("*",)


def ports(snapshot: Snapshot) -> tuple[ServedPort, ...]:
    """Each port with the rules that lead to it. A rule with a target that is not a pool is left out."""
    found: dict[int, list[ServedRoute]] = {}
    for gateway in snapshot.gateways:
        routes = [route for route in snapshot.routes if gateway.meta.key in gateways_of(route)]
        for listener in gateway.spec.listeners:
            served = found.setdefault(listener.port, [])
            for route in routes:
                served += _served(route, snapshot)
    return tuple(ServedPort(port, tuple(routes)) for port, routes in sorted(found.items()))


def backends(snapshot: Snapshot) -> tuple[PoolBackend, ...]:
    return tuple(
        PoolBackend(
            str(pool.meta.key),
            tuple(_servers(pool, snapshot.pods)),
            snapshot.pickers.get(picker_of(pool), ()),
            pool.spec.picker.failure_mode == "FailOpen",
        )
        for pool in sorted(snapshot.pools, key=lambda each: each.meta.key)
    )


def gateways_of(route: HttpRoute) -> set[ObjectKey]:
    return {ObjectKey(each.namespace or route.meta.namespace, each.name) for each in route.spec.parent_refs}


def picker_of(pool: InferencePool) -> ObjectKey:
    return ObjectKey(pool.meta.namespace, pool.spec.picker.name)


def unresolved(route: HttpRoute, pools: Iterable[InferencePool]) -> str:
    """The reason why a route's targets cannot be served, as its condition states it; empty if they can."""
    known = {pool.meta.key for pool in pools}
    for backend in (backend for rule in route.spec.rules for backend in rule.backend_refs):
        if (backend.group, backend.kind) != (POOL_GROUP, "InferencePool"):
            return "InvalidKind"
        if backend.namespace not in {"", route.meta.namespace}:
            return "RefNotPermitted"
        if _key(backend, route) not in known:
            return "BackendNotFound"
    return ""


def pools_of(route: HttpRoute) -> set[ObjectKey]:
    """The pools that a route leads to, whether they are there or not."""
    targets = (backend for rule in route.spec.rules for backend in rule.backend_refs)
    return {_key(each, route) for each in targets if each.group == POOL_GROUP}


def _served(route: HttpRoute, snapshot: Snapshot) -> Iterable[ServedRoute]:
    if unresolved(route, snapshot.pools):
        return
    for rule in route.spec.rules:
        weights = [
            (str(_key(each, route)), 1 if each.weight is None else each.weight) for each in rule.backend_refs
        ]
        if sum(weight for _, weight in weights):
            yield ServedRoute(route.spec.hostnames or _ANY_HOST, tuple(weights))


def _key(backend: BackendReference, route: HttpRoute) -> ObjectKey:
    return ObjectKey(route.meta.namespace, backend.name)


def _servers(pool: InferencePool, pods: Iterable[Pod]) -> Iterable[str]:
    wanted = pool.spec.selector.match_labels.items()
    for pod in sorted(pods, key=lambda each: each.meta.key):
        mine = pod.meta.namespace == pool.meta.namespace and wanted <= pod.meta.labels.items()
        if mine and pod.status.pod_ip and not pod.meta.deleted:
            yield from (f"{pod.status.pod_ip}:{port.number}" for port in pool.spec.target_ports)
