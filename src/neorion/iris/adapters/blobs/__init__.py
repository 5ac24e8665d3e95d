"""Where large blobs are kept, by the hash of their content.

Small ones are rows of the store; which blob is still needed is decided elsewhere.
"""

from neorion.iris.adapters.blobs.folder import FolderBlobs

__all__ = ["FolderBlobs"]
