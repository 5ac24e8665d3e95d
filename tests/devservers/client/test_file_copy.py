import io
import tarfile
from pathlib import Path

import pytest

from neorion.devservers.client.file_copy import is_only_live, unpack
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
        file("data/inner/evil"),
        link("data/way", "../evil", tarfile.LNKTYPE),
        link("data/way", "/etc/passwd", tarfile.LNKTYPE),
    ],
    ids=lambda member: f"{member.name} {member.linkname}".strip(),
)
def test_a_name_that_leads_out_is_refused_and_nothing_is_written(tmp_path: Path, bad: tarfile.TarInfo):
    target = tmp_path / "here"
    target.mkdir()
    packed = archive(folder("data"), file("data/good"), link("data/inner", "."), bad)
    with pytest.raises(Invalid) as refused:
        unpack(packed, "data", target, "data")
    assert refused.value.code == "devservers.outside"
    assert list(tmp_path.rglob("*")) == [target]


def test_what_leads_out_is_left_out_and_told_and_the_rest_arrives(tmp_path: Path):
    target = tmp_path / "here"
    target.mkdir()
    packed = archive(
        folder("data"),
        link("data/way", "/etc"),
        link("data/up", "../../.."),
        # A second name of a link, as tar packs it.
        link("data/twin", "data/way", tarfile.LNKTYPE),
        link("data/pipe", "", tarfile.FIFOTYPE),
        link("data/near", "good"),
        file("data/good"),
    )
    left = unpack(packed, "data", target, "mine")
    assert {(one.path, one.target) for one in left} == {
        ("mine/way", "/etc"),
        ("mine/up", "../../.."),
        ("mine/twin", "mine/way"),
        ("mine/pipe", ""),
    }
    assert {one.name for one in (target / "mine").iterdir()} == {"near", "good"}
    assert (target / "mine/near").read_bytes() == b"xxx"


def test_links_that_lead_out_only_together_are_left_out(tmp_path: Path):
    target = tmp_path / "here"
    target.mkdir()
    packed = archive(
        folder("data"),
        folder("data/a"),
        folder("data/a/b"),
        link("data/a/b/near", "../.."),
        link("data/a/b/far", "near/../.."),
    )
    left = unpack(packed, "data", target, "data")
    assert [one.path for one in left] == ["data/a/b/far"]
    assert [path.name for path in target.rglob("*") if path.is_symlink()] == ["near"]


def test_a_copy_over_an_earlier_one_writes_through_none_of_its_links(tmp_path: Path):
    target = tmp_path / "here"
    (target / "data").mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    (target / "data/a").symlink_to(tmp_path / "mine")
    with pytest.raises(Invalid):
        unpack(archive(folder("data"), file("data/a")), "data", target, "data")
    assert (tmp_path / "mine").read_text() == "mine"


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
