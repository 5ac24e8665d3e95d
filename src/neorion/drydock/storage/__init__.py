"""Volumes for claims: a default storage class, and the process that creates and removes a folder for each.

They are in the cluster's folder, so every node has them and they are removed with the cluster. Their content belongs to pods.
"""

from neorion.drydock.storage.deploy import publish_storage, storage_part

__all__ = ["publish_storage", "storage_part"]
