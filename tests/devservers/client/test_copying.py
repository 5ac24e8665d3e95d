import io
import tarfile
from pathlib import Path

import pytest

from neorion.devservers.client.copying import is_only_live, unpack
from neorion.keel.base import Invalid, NotFound, Terminal


def archive(*members: tarfile.TarInfo) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return made


def file(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = 3
    return member


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member


def folder(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, 0o755
    return member


def test_a_tree_arrives_under_the_name_it_is_given(tmp_path: Path):
    packed = archive(
        folder("data"), file("data/a"), link("data/b", "a"), link("data/c", "data/a", tarfile.LNKTYPE)
    )
    unpack(packed, "data", tmp_path, "mine")
    assert {one.name for one in (tmp_path / "mine").iterdir()} == {"a", "b", "c"}
    assert (tmp_path / "mine/b").read_bytes() == (tmp_path / "mine/c").read_bytes() == b"xxx"


@pytest.mark.parametrize(
    "bad",
    [
        file("../evil"),
        file("data/../../evil"),
        file("/etc/evil"),
        file("other"),
        link("data/way", "/etc"),
        link("data/way", "../../.."),
        link("data/way", "../evil", tarfile.LNKTYPE),
        link("data/way", "/etc/passwd", tarfile.LNKTYPE),
        link("data/pipe", "", tarfile.CHRTYPE),
    ],
    ids=lambda member: f"{member.name} {member.linkname}".strip(),
)
def test_a_name_that_leads_out_is_refused_and_nothing_is_written(tmp_path: Path, bad: tarfile.TarInfo):
    target = tmp_path / "here"
    target.mkdir()
    with pytest.raises(Invalid) as refused:
        unpack(archive(folder("data"), file("data/good"), bad), "data", target, "data")
    assert refused.value.code == "devservers.outside"
    assert list(tmp_path.rglob("*")) == [target]


def test_rubbish_is_no_archive(tmp_path: Path):
    with pytest.raises(Terminal):
        unpack(io.BytesIO(b"rubbish" * 200), "data", tmp_path, "data")


def test_the_folder_must_be_there(tmp_path: Path):
    with pytest.raises(NotFound):
        unpack(archive(file("data")), "data", tmp_path / "no", "data")


def test_files_that_are_written_to_meanwhile_are_no_failure():
    changed = "tar: runs/log: file changed as we read it\n"
    removed = "tar: runs/tmp: File removed before we read it\n"
    assert is_only_live(1, changed + removed)
    assert not is_only_live(2, changed)
    assert not is_only_live(1, changed + "tar: runs/key: Cannot open: Permission denied\n")
    assert not is_only_live(1, "")
