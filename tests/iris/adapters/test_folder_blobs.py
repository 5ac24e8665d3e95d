"""What only a folder can get wrong: files half written, damaged, or not on the disk."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.blobs import FolderBlobs
from neorion.iris.model import Digest
from neorion.keel.base import Terminal

BODY = b"some bytes"
DIGEST = Digest(hashlib.sha256(BODY).hexdigest())


@pytest.mark.anyio
async def test_files_fan_out_over_two_levels(tmp_path: Path):
    await FolderBlobs(tmp_path).put(DIGEST, BODY)
    assert (tmp_path / DIGEST[:2] / DIGEST[2:4] / DIGEST).read_bytes() == BODY


@pytest.mark.anyio
async def test_a_damaged_file_is_never_taken_for_the_blob(tmp_path: Path):
    files = FolderBlobs(tmp_path)
    await files.put(DIGEST, BODY)
    (tmp_path / DIGEST[:2] / DIGEST[2:4] / DIGEST).write_bytes(BODY[:-1])
    with pytest.raises(Terminal) as damaged:
        await files.get(DIGEST)
    assert damaged.value.code == "iris.blob_damaged"


# Dies inside the first sync, when the bytes are written and the blob has no name yet.
DYING = """
import os, sys
from pathlib import Path
import anyio
from neorion.iris.adapters.blobs import FolderBlobs

files = FolderBlobs(Path(sys.argv[1]))
os.fsync = lambda _: os._exit(9)
anyio.run(files.put, sys.argv[2], b"some bytes")
"""


def test_a_blob_cut_short_by_a_crash_is_not_there_and_leaves_nothing(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", DYING, tmp_path, DIGEST], check=False)
    assert done.returncode == 9
    assert len(list((tmp_path / "incoming").iterdir())) == 1
    files = FolderBlobs(tmp_path)
    assert anyio.run(files.get, DIGEST) is None
    assert list((tmp_path / "incoming").iterdir()) == []


@pytest.mark.anyio
@pytest.mark.parametrize("there", [False, True])
async def test_the_file_and_every_folder_on_its_way_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool
):
    files = FolderBlobs(tmp_path)
    if there:
        await files.put(DIGEST, BODY)
    synced: list[str] = []

    def fsync(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    monkeypatch.setattr(os, "fsync", fsync)
    await files.put(DIGEST, BODY)
    place = tmp_path / DIGEST[:2] / DIGEST[2:4]
    partial = [] if there else [str(tmp_path / "incoming" / f"{DIGEST}-0")]
    assert synced == [*partial, str(place), str(place.parent), str(tmp_path)]
