"""Reads the quota of all teams from a cluster with Kueue."""

from neorion.devservers.decide.team_usage import QuotaObjects
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.devservers.model.kueue import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, WORKLOADS
from neorion.keel.base import NotFound
from neorion.keel.kube import UnknownKind
from neorion.keel.kube.client import Client


async def read_quota(client: Client) -> QuotaObjects:
    """Needs the rights of an administrator."""
    try:
        return QuotaObjects(
            teams=(await client.list(CLUSTER_QUEUES)).items,
            queues=(await client.list(LOCAL_QUEUES)).items,
            workloads=(await client.list(WORKLOADS)).items,
            flavors=(await client.list(RESOURCE_FLAVORS)).items,
            servers=(await client.list(DEVSERVERS)).items,
        )
    except UnknownKind:
        raise NotFound(
            "devservers.no_kueue",
            "This cluster has no Kueue, and so no quota of teams.",
            hint="List users instead: devctl admin user list.",
        ) from None
