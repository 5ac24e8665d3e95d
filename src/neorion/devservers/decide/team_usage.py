"""Quota of teams: what dev servers, jobs of iris and others hold of it together, and what that costs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from neorion.devservers.decide.cost import rate
from neorion.devservers.decide.names import SERVER_LABEL
from neorion.devservers.decide.quota import has_quota, is_waiting
from neorion.devservers.model import GROUP
from neorion.devservers.model.flavor import is_gpu
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.model.kueue import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from neorion.keel.base import Quantity
from neorion.keel.kube import ObjectKey

# Annotations of a ResourceFlavor: the price of an hour of one GPU, or of one CPU, of its nodes.
GPU_HOUR: Final = f"{GROUP}/gpu-hour"
CPU_HOUR: Final = f"{GROUP}/cpu-hour"
# The Pod of an attempt of iris is named so.
_IRIS_POD: Final = "iris-"


class HolderKind(StrEnum):
    """The system that asked for quota."""

    SERVER = "server"
    JOB = "job"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Holder:
    """One server or job that holds quota of a team. Its price is None where none is known."""

    kind: HolderKind
    namespace: str
    name: str
    team: str
    machines: int
    used: Mapping[str, Quantity]
    per_hour: Decimal | None
    since: str


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Amount of a resource that a team uses, and its own quota. What is above that is borrowed."""

    used: Quantity
    quota: Quantity

    @property
    def borrowed(self) -> Quantity:
        return Quantity(max(0, self.used.nano - self.quota.nano))


@dataclass(frozen=True, slots=True)
class TeamUsage:
    """One ClusterQueue of Kueue, with all that holds quota of it."""

    team: str
    cohort: str
    holders: tuple[Holder, ...]
    waiting: int
    resources: Mapping[str, ResourceUsage]

    def count(self, kind: HolderKind) -> int:
        return sum(one.kind is kind for one in self.holders)

    @property
    def per_hour(self) -> Decimal:
        return sum((one.per_hour or Decimal(0) for one in self.holders), Decimal(0))

    @property
    def unpriced(self) -> int:
        return sum(one.per_hour is None for one in self.holders)


@dataclass(frozen=True, slots=True)
class QuotaObjects:
    """Everything of Kueue, and the servers, at one moment."""

    teams: Iterable[ClusterQueue]
    queues: Iterable[LocalQueue]
    workloads: Iterable[Workload]
    flavors: Iterable[ResourceFlavor]
    servers: Iterable[DevServerObject]


def usage_of_teams(seen: QuotaObjects) -> tuple[TeamUsage, ...]:
    """Each ClusterQueue, by name."""
    workloads = tuple(seen.workloads)
    servers = {one.meta.key: one for one in seen.servers}
    flavors = {one.meta.name: one for one in seen.flavors}
    team_of = {one.meta.key: one.spec.cluster_queue for one in seen.queues}
    holders = [_holder(one, servers, flavors) for one in workloads if has_quota(one)]
    waiting = [
        team_of.get(ObjectKey(one.meta.namespace, one.spec.queue_name))
        for one in workloads
        if is_waiting(one)
    ]
    return tuple(
        _usage(
            one, tuple(held for held in holders if held.team == one.meta.name), waiting.count(one.meta.name)
        )
        for one in sorted(seen.teams, key=lambda team: team.meta.name)
    )


def _usage(team: ClusterQueue, holders: tuple[Holder, ...], waiting: int) -> TeamUsage:
    quotas = _added(
        (one.name, one.nominal_quota)
        for group in team.spec.resource_groups
        for flavor in group.flavors
        for one in flavor.resources
    )
    used = _added(item for one in holders for item in one.used.items())
    resources = {
        name: ResourceUsage(used.get(name, Quantity(0)), quotas.get(name, Quantity(0)))
        for name in sorted({*quotas, *used})
    }
    return TeamUsage(team.meta.name, team.spec.cohort_name, holders, waiting, resources)


def _holder(
    workload: Workload,
    servers: Mapping[ObjectKey, DevServerObject],
    flavors: Mapping[str, ResourceFlavor],
) -> Holder:
    meta, admission = workload.meta, workload.status.admission
    assignments = admission.pod_set_assignments if admission is not None else ()
    server = meta.labels.get(SERVER_LABEL, "")
    owner = meta.owners[0].name if meta.owners else meta.name
    pods = any(one.kind == "Pod" and one.name.startswith(_IRIS_POD) for one in meta.owners)
    kind = HolderKind.SERVER if server else HolderKind.JOB if pods else HolderKind.OTHER
    found = servers.get(ObjectKey(meta.namespace, server)) if server else None
    return Holder(
        kind=kind,
        namespace=meta.namespace,
        name=server or owner,
        team=admission.cluster_queue if admission is not None else "",
        machines=sum(one.count for one in assignments),
        used=_added(item for one in assignments for item in one.resource_usage.items()),
        per_hour=_price_of_server(found) if found is not None else _price(workload, flavors),
        since=meta.created or "",
    )


def _price_of_server(server: DevServerObject) -> Decimal | None:
    """Price by its flavor. A server that has just been admitted has no account yet."""
    return Decimal(rate(server.status.cost)) if server.status.cost is not None else None


def _price(workload: Workload, flavors: Mapping[str, ResourceFlavor]) -> Decimal | None:
    """Sum over the GPUs and CPUs, each by the price of the nodes that Kueue chose."""
    admission = workload.status.admission
    prices = [
        (marks[key], one.resource_usage.get(resource))
        for one in (admission.pod_set_assignments if admission is not None else ())
        for resource, name in one.flavors.items()
        if name in flavors
        and (marks := flavors[name].meta.annotations)
        and (key := GPU_HOUR if is_gpu(resource) else CPU_HOUR) in marks
        and (resource == "cpu" or is_gpu(resource))
    ]
    if not prices:
        return None
    return sum(
        (Decimal(price) * Quantity.parse(amount).milli / 1000 for price, amount in prices if amount),
        Decimal(0),
    )


def _added(items: Iterable[tuple[str, object]] | Iterator[tuple[str, object]]) -> dict[str, Quantity]:
    sums: dict[str, Quantity] = {}
    for name, amount in items:
        sums[name] = sums.get(name, Quantity(0)) + Quantity.parse(amount)
    return sums
