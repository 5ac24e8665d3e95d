"""Definitions of an add-on's kinds, written and waited for."""

from collections.abc import Sequence
from functools import partial

from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster


async def publish_definitions(cluster: Cluster, definitions: Sequence[Object]) -> None:
    """Returns when the API server serves every kind in its newest version."""
    _, server, *_ = cluster.control_plane()
    async with cluster.api() as api:
        for body in definitions:
            name = body["metadata"]["name"]
            await api.apply(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}", body)
        for body in definitions:
            spec = body["spec"]
            version = next(each["name"] for each in spec["versions"] if each["storage"])
            path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            await cluster.until(server, partial(api.get, path))
