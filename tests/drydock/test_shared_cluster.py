"""The lock files of shared clusters, which have fixed names in a folder of everybody."""

import os
import tempfile
from pathlib import Path

import pytest

from neorion.drydock.clusters import ClusterManager
from neorion.drydock.testing import remove_unused
from neorion.keel.base import Denied


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def manager(folder: Path) -> ClusterManager:
    return ClusterManager.of(
        {"XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder), "HOME": str(folder)}
    )


def test_a_lock_file_is_its_owners_alone(folder: Path):
    assert remove_unused("mine", manager(folder))
    assert (folder / "neorion-mine.gate").stat().st_mode & 0o777 == 0o600


def test_a_link_that_another_user_left_is_not_followed(folder: Path):
    precious = folder / "precious"
    precious.write_text("content")
    (folder / "neorion-mine.gate").symlink_to(precious)
    with pytest.raises(Denied) as refused:
        remove_unused("mine", manager(folder))
    assert refused.value.code == "drydock.lock"
    assert precious.read_text() == "content"


@pytest.mark.needs("root")
def test_a_file_of_another_user_is_refused(folder: Path):
    left = folder / "neorion-mine.gate"
    left.touch()
    os.chown(left, 65_534, 65_534)
    with pytest.raises(Denied):
        remove_unused("mine", manager(folder))
