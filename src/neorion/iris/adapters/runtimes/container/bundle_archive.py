"""A bundle as one file, for its way into a container."""

import shutil
from pathlib import Path, PurePath

import anyio.to_thread


async def as_archive(bundle: PurePath, archive: Path) -> Path:
    """The bundle itself where it is an archive; a directory is packed into `archive`."""
    found = Path(bundle)
    if not found.is_dir():
        return found
    packed = await anyio.to_thread.run_sync(
        lambda: shutil.make_archive(str(archive.with_suffix("")), "zip", found)
    )
    return Path(packed)
