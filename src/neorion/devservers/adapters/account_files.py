"""The files by which a container is a service account, as the kubelet mounts them."""

import os
from pathlib import Path

from neorion.keel.kube import ServiceAccountToken
from neorion.keel.kube.client import ClusterConfig


def write_account(folder: Path, cluster: ClusterConfig, namespace: str, token: ServiceAccountToken) -> None:
    """Each file whole or not at all: the container beside reads them at any moment."""
    for name, text in (("ca.crt", cluster.trust.ca), ("namespace", namespace), ("token", token.text)):
        fresh = folder / f".{name}.new"
        fresh.unlink(missing_ok=True)
        # Readable by the other container, which runs as the same user.
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
            target.write(text)
        fresh.replace(folder / name)
