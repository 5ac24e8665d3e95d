"""How a cluster gets its CoreWeave: the definition, and the process."""

import sys
from typing import Final

from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.coreweave.crd import GROUP, VERSION, definition
from neorion.drydock.coreweave.player import BOOT
from neorion.drydock.host import Part
from neorion.drydock.pki import Subject
from neorion.drydock.simulated import start_player
from neorion.keel.base import Duration

_WHO: Final = "coreweave"


async def resume_coreweave(cluster: Cluster) -> None:
    """Where it was, it goes on."""
    if cluster.layout.kubeconfig_of(_WHO).exists():
        await start_coreweave(cluster)


async def start_coreweave(cluster: Cluster, boot: Duration = BOOT) -> None:
    """Defines NodePools and starts who serves them; `boot` is how long machines take to arrive."""
    await start_player(cluster)
    layout = cluster.layout
    cluster.pki.issue(_WHO, Subject("drydock-coreweave", ("system:masters",)))
    cluster.pki.kubeconfig(layout.kubeconfig_of(_WHO), _WHO, layout.server)
    crd = definition()
    argv = (
        sys.executable,
        "-m",
        "neorion.drydock.coreweave",
        str(layout.kubeconfig_of(_WHO)),
        str(boot.seconds),
    )
    part = Part(_WHO, argv)
    async with cluster.api() as api:
        await api.apply(_crd_path(crd), crd)
        await cluster.ensure(part)
        await cluster.until(part, lambda: api.get(f"/apis/{GROUP}/{VERSION}/nodepools"))


def _crd_path(crd: Object) -> str:
    return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
