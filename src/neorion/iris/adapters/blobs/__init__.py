"""Where large blobs are kept, by the hash of their content: a folder, or a bucket.

Small ones are rows of the store; which blob is still needed is decided elsewhere. The client for buckets is an extra and
loads when a bucket is opened.
"""

from neorion.iris.adapters.blobs.factory import open_blobs
from neorion.iris.adapters.blobs.folder import FolderBlobs

__all__ = ["FolderBlobs", "open_blobs"]
