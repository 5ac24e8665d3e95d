"""Volumes for claims: a default storage class, and the process that makes and removes a folder for each.

They live in the cluster's own folder, so every node has them and they go with the cluster. What is in them is the pods'.
"""

from neorion.drydock.storage.deploy import publish_storage, storage_part

__all__ = ["publish_storage", "storage_part"]
