"""Looks up what a change of a running server depends on. It is asked seldom, so nothing of it is mirrored."""

from typing import TypeVar

from neorion.devservers.decide import ClusterFacts, Observed
from neorion.devservers.model.kube_types import STORAGE_CLASSES, VOLUMES
from neorion.keel.base import Denied, NotFound
from neorion.keel.kube import Kind, KubeApi
from neorion.keel.kube.core import NODE, RESOURCE_QUOTA
from neorion.keel.telemetry import logger

log = logger(__name__)

T = TypeVar("T")


async def survey(api: KubeApi, seen: Observed) -> ClusterFacts | None:
    """None where the operator may not look: then changes are not checked before they are made."""
    try:
        return await _survey(api, seen)
    except Denied as error:
        log.warning("surroundings not seen", server=str(seen.server.meta.key), error=str(error))
        return None


async def _survey(api: KubeApi, seen: Observed) -> ClusterFacts:
    home = seen.home.spec if seen.home else None
    kept_in = await _found(api, STORAGE_CLASSES, home.storage_class_name) if home else None
    return ClusterFacts(
        volume=await _found(api, VOLUMES, home.volume_name) if home else None,
        nodes=tuple((await api.list(NODE)).items),
        quotas=tuple((await api.list(RESOURCE_QUOTA, seen.identity.namespace)).items),
        home_grows=kept_in is not None and kept_in.allow_volume_expansion,
    )


async def _found(api: KubeApi, kind: Kind[T], name: str | None) -> T | None:
    """Gets an object; None if it does not exist."""
    try:
        return await api.get(kind, name) if name else None
    except NotFound:
        return None
