"""Garbage collection of blobs that no job refers to: of submissions that never came, or left by a crash."""

from neorion.iris.controllers.blob_store import BlobStore
from neorion.iris.controllers.blob_upload import BlobUploads
from neorion.iris.controllers.job_gc import digests_of
from neorion.iris.model import Digest
from neorion.iris.state import ClusterState
from neorion.keel.telemetry import logger

log = logger(__name__)


class BlobGarbageCollector:
    """Collector that deletes a blob without a job at two successive ticks, so that its age is at least one period."""

    def __init__(self, cluster: ClusterState, blobs: BlobStore, uploads: BlobUploads) -> None:
        self._cluster = cluster
        self._blobs = blobs
        self._uploads = uploads
        self._before: set[Digest] = set()

    async def tick(self) -> None:
        self._uploads.expire()
        known = await self._blobs.known()
        # Read after the rows, so that a job submitted in between is seen with its blobs.
        named = {digest for job in self._cluster.jobs.values() for digest in digests_of(self._cluster, job)}
        orphans = [digest for digest in known if digest not in named]
        doomed = [digest for digest in orphans if digest in self._before]
        spared = await self._blobs.sweep(doomed) if doomed else []
        self._before = set(orphans).difference(doomed).union(spared)
        if gone := len(doomed) - len(spared):
            log.info("orphan blobs deleted", count=gone)
