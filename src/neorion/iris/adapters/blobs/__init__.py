"""Backends for large blobs, by the hash of their content: a folder, or a bucket.

Small blobs are rows of the store. Garbage collection is elsewhere. The client for buckets is an optional extra that is
imported when a bucket is opened.
"""

from neorion.iris.adapters.blobs.factory import open_blobs
from neorion.iris.adapters.blobs.folder import FolderBlobs

__all__ = ["FolderBlobs", "open_blobs"]
