"""The add-ons by name, and how they are started again."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neorion.drydock.addons import (
    coscheduling,
    custom_metrics,
    device_metrics,
    gvisor,
    jobset,
    karpenter,
    pod_groups,
    prometheus,
    traefik,
)
from neorion.drydock.binaries import Tell, build_missing
from neorion.drydock.cluster import Cluster
from neorion.drydock.layout import Layout
from neorion.keel.base import NotFound, did_you_mean


@dataclass(frozen=True, slots=True)
class Addon:
    """One add-on. `networked` ones serve the cluster at an address of the bridge, because Services refuse loopback.

    `url` is the address at which people use it, where there is one.
    """

    name: str
    start: Callable[[Cluster], Awaitable[None]]
    programs: tuple[str, ...] = ()
    networked: bool = False
    url: Callable[[Layout], str] | None = None


ADDONS: Final = {
    addon.name: addon
    for addon in (
        # First: it restarts the control plane.
        Addon("pod-groups", pod_groups.start),
        Addon("coscheduling", coscheduling.start, coscheduling.PROGRAMS),
        Addon("custom-metrics", custom_metrics.start, networked=True),
        Addon("device-metrics", device_metrics.start, networked=True),
        Addon("gvisor", gvisor.start, gvisor.PROGRAMS, networked=True),
        Addon("jobset", jobset.start, jobset.PROGRAMS),
        Addon("karpenter", karpenter.start, karpenter.PROGRAMS),
        Addon("prometheus", prometheus.start, prometheus.PROGRAMS, networked=True, url=prometheus.url),
        Addon("traefik", traefik.start, traefik.PROGRAMS, networked=True, url=traefik.url),
    )
}


async def start_addons(cluster: Cluster, names: Collection[str], tell: Tell) -> None:
    for addon in (addon for name, addon in ADDONS.items() if name in names):
        tell(f"starting {addon.name}")
        await build_missing(cluster.shelf, addon.programs, tell)
        # First: where this is broken off, `resume_addons` goes on.
        _mark(cluster, addon.name).touch()
        await addon.start(cluster)


async def resume_addons(cluster: Cluster, names: Collection[str], tell: Tell) -> None:
    """Starts those that are asked for, and those that the cluster had."""
    had = {name for name in ADDONS if _mark(cluster, name).exists()}
    await start_addons(cluster, had | set(names), tell)


def url_of(cluster: Cluster, name: str) -> str:
    """The address of an add-on that the cluster has."""
    urls = {
        each.name: each.url for each in ADDONS.values() if each.url and _mark(cluster, each.name).exists()
    }
    url = urls.get(name)
    if url is None:
        raise NotFound(
            "drydock.no_url",
            f'Cluster {cluster.name} has no "{name[:60]}" with an address.',
            hint=did_you_mean(name, urls)
            or f"Add it: neorion drydock up --name {cluster.name} --with prometheus",
        )
    return url(cluster.layout)


def _mark(cluster: Cluster, name: str) -> Path:
    return cluster.layout.data(f"addon-{name}")
