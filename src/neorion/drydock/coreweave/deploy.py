"""Gives a cluster its CoreWeave: the definition, and the process."""

import sys
from typing import Final

from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.coreweave.crd import GROUP, VERSION, definition
from neorion.drydock.coreweave.rate_limit import limiting
from neorion.drydock.coreweave.simulator import BOOT
from neorion.drydock.host import Component
from neorion.drydock.layout import LOOPBACK, PortOffset
from neorion.drydock.pki import Subject
from neorion.drydock.simulated import start_kwok
from neorion.keel.base import Duration

WHO: Final = "coreweave"


async def resume_coreweave(cluster: Cluster) -> None:
    """Where it was, it goes on."""
    if cluster.layout.kubeconfig_of(WHO).exists():
        await start_coreweave(cluster)


async def start_coreweave(cluster: Cluster, boot: Duration = BOOT) -> None:
    """Defines NodePools and starts who serves them; `boot` is how long machines take to arrive."""
    await start_kwok(cluster)
    layout = cluster.layout
    # One certificate for both directions: it calls the API server, and the API server calls it.
    cluster.pki.issue(WHO, Subject("drydock-coreweave", ("system:masters",), (LOOPBACK,)))
    cluster.pki.kubeconfig(layout.kubeconfig_of(WHO), WHO, layout.server)
    crd = definition()
    hook = limiting(layout.port(PortOffset.COREWEAVE_WEBHOOK), cluster.pki.certificate("ca"))
    argv = (
        sys.executable,
        # Not from the current folder.
        "-P",
        "-m",
        "neorion.drydock.coreweave",
        str(layout.folder),
        str(boot.seconds),
    )
    part = Component(WHO, argv)
    async with cluster.api() as api:
        await api.apply(_path("apiextensions.k8s.io/v1/customresourcedefinitions", crd), crd)
        await api.apply(_path("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", hook), hook)
        await cluster.ensure(part)
        await cluster.until(part, lambda: api.get(f"/apis/{GROUP}/{VERSION}/nodepools"))


def _path(collection: str, thing: Object) -> str:
    return f"/apis/{collection}/{thing['metadata']['name']}"
