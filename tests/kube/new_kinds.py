"""Kinds that were installed a moment ago, and controllers that know them."""

from collections.abc import Sequence

from neorion.devservers.adapters.install import ChangeType, Installer
from neorion.devservers.adapters.install.resource_kinds import Manifest
from neorion.drydock.cluster import Cluster
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import DEFINITION


async def install(cluster: Cluster, client: Client, manifests: Sequence[Manifest]) -> None:
    """Also makes new kinds known to the controllers, which count and collect their objects."""
    steps = await Installer(client).install(manifests)
    if any(step.kind == DEFINITION.name and step.outcome is ChangeType.CREATED for step in steps):
        await restart_controllers(cluster)


async def restart_controllers(cluster: Cluster) -> None:
    """They look for new kinds at their start, and then every 30 s."""
    await cluster.stop("kube-controller-manager")
    await cluster.start_controllers()
