"""PodGroups of Kubernetes itself, an alpha feature: a scheduler that places gangs whole."""

import json
from typing import Final

from neorion.drydock.cluster import Cluster
from neorion.drydock.control import FEATURES

NAME: Final = "pod-groups"
_FLAGS: Final = {
    "feature-gates": "GenericWorkload=true,GangScheduling=true",
    "runtime-config": "scheduling.k8s.io/v1alpha2=true",
}
_KIND: Final = "/apis/scheduling.k8s.io/v1alpha2/podgroups"


async def start(cluster: Cluster) -> None:
    """Returns when the kind is served. The control plane restarts once, with the feature gates."""
    cluster.layout.data(FEATURES).write_text(json.dumps(_FLAGS))
    await cluster.start_control_plane()
    _, server, *_ = cluster.control_plane()
    async with cluster.api() as api:
        await cluster.until(server, lambda: api.get(_KIND))
