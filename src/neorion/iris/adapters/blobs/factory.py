"""Opens the blob backend that a configuration names."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from neorion.iris.adapters.blobs.folder import FolderBlobs
from neorion.iris.ports import BlobBackend
from neorion.keel.base import Invalid

_SCHEMES: Final = ("file", "s3", "gs")


def open_blobs(prefix: str, default: Path) -> BlobBackend:
    """Opens a folder, file:///folder, s3://bucket/path or gs://bucket/path, or the default folder.

    Buckets use the credentials that their vendor's own programs would find in the environment.
    """
    if "://" not in prefix:
        return FolderBlobs(Path(prefix) if prefix else default)
    parts = urlsplit(prefix)
    if parts.scheme not in _SCHEMES:
        raise Invalid(
            "iris.bundle_prefix",
            f"{parts.scheme}:// is not a valid scheme for blobs.",
            hint="Name a folder, or an address with file://, s3:// or gs://.",
        )
    if parts.scheme == "file":
        return FolderBlobs(_folder(prefix, parts.netloc, unquote(parts.path)))
    if not parts.netloc:
        raise Invalid(
            "iris.bundle_prefix", f"{prefix} names no bucket.", hint=f"Write {parts.scheme}://BUCKET/PATH."
        )
    return _bucket(prefix)


def _folder(prefix: str, host: str, path: str) -> Path:
    if host or not path.startswith("/"):
        raise Invalid(
            "iris.bundle_prefix",
            f"{prefix} is not on this machine.",
            hint="Write three slashes, as in file:///folder.",
        )
    return Path(path)


def _bucket(prefix: str) -> BlobBackend:
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 -- only buckets need it
        from obstore.store import from_url  # noqa: PLC0415 -- only buckets need it

        from neorion.iris.adapters.blobs.bucket import BucketBlobs  # noqa: PLC0415 -- only buckets need it
    except ModuleNotFoundError as error:
        raise Invalid(
            "iris.bundle_prefix",
            f"{prefix} needs a client for object stores.",
            hint="Run: pip install 'neorion[objects]'.",
        ) from error
    try:
        return BucketBlobs(from_url(prefix), prefix)
    except (BaseError, ValueError) as error:
        raise Invalid(
            "iris.bundle_prefix",
            f"{prefix} cannot be opened: {error}.",
            hint="See docs/guides/blobs.md for the variables that it needs.",
        ) from error
