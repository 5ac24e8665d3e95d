"""Targets that unpack archives: copies out of servers, and bundles of jobs."""

import io
import shutil
import tarfile
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from neorion.devservers.client.file_copy import unpack as unpack_tar
from neorion.iris.adapters.runtimes.process.task.bundle import unpack as unpack_bundle
from tests.attacks.fuzz_target import Attempt, Target, folder, mutants


def _tar(*members: tuple[str, bytes, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, link, 3 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"abc"))
    # Without the padding at the end, in which changes would mean nothing.
    return made.getvalue().rstrip(b"\0") + bytes(1024)


TARS: Final = [
    _tar(("data", tarfile.DIRTYPE, ""), ("data/a", tarfile.REGTYPE, ""), ("data/b", tarfile.SYMTYPE, "a")),
    _tar(
        ("data/a", tarfile.REGTYPE, ""),
        ("data/c", tarfile.LNKTYPE, "data/a"),
        ("data/p", tarfile.FIFOTYPE, ""),
    ),
    _tar(("data/" + "é" * 120, tarfile.REGTYPE, ""), ("data/dev", tarfile.CHRTYPE, "")),
]
TAR_TOKENS: Final = [
    *(
        b"../",
        b"/etc/",
        b"data/",
        b"\0",
        b"\x80\0\0\0\0\0\0\0\0\0\x01",
        b"\xff" * 12,
        b"00000000000",
        b"77777777777",
    ),
    *(b"0", b"1", b"2", b"5", b"L", b"K", b"x", b"g", b"S", b"ustar\x0000", b"ustar  ", b"30 path=../../x\n"),
    *(
        b"19 size=-1\n",
        b"25 GNU.sparse.major=1\n",
        b"30 GNU.sparse.map=0,9,99,9\n",
        b"99999999999 x=",
        b"12 mtime=nan\n",
    ),
]


@contextmanager
def _copies() -> Generator[Attempt]:
    with folder() as outside:
        inside = outside / "inside"
        (outside / "precious").write_text("mine")

        def attempt(body: bytes) -> str:
            inside.mkdir()
            try:
                unpack_tar(io.BytesIO(_summed(body)), "data", inside, "mine")
            finally:
                shutil.rmtree(inside)
                assert sorted(path.name for path in outside.iterdir()) == ["precious"], "it wrote outside"
            return "read"

        yield attempt


def _summed(body: bytes) -> bytes:
    """The same archive with a right checksum in every second one: otherwise few would be read further than that."""
    if len(body) % 2:
        return body
    changed = bytearray(body)
    for at in range(0, len(changed) - 511, 512):
        if changed.startswith(b"ustar", at + 257):
            changed[at + 148 : at + 156] = b" " * 8
            changed[at + 148 : at + 155] = b"%06o\0" % sum(changed[at : at + 512])
    return bytes(changed)


def _zip(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/"), text)
    return made.getvalue()


ZIPS: Final = [_zip(main="print(1)" * 40, pkg__a="x", pkg__b="y" * 900), _zip(one="1"), _zip()]
ZIP_TOKENS: Final = [
    *(
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"PK\x06\x06",
        b"PK\x06\x07",
        b"../",
        b"/",
        b"\\",
        b"\0",
        b"C:",
    ),
    *(
        b"\xff\xff\xff\xff",
        b"\xff\xff",
        b"\x08\x00",
        b"\x0c\x00",
        b"\x0e\x00",
        b"\x63\x00",
        b"\x01\x00",
        b"\x00" * 4,
    ),
]


@contextmanager
def _bundles() -> Generator[Attempt]:
    with folder() as outside:
        source, inside = outside / "bundle.zip", outside / "inside"

        def attempt(body: bytes) -> str:
            source.write_bytes(body)
            inside.mkdir()
            try:
                unpack_bundle(source, inside)
            finally:
                shutil.rmtree(inside)
                assert [path.name for path in outside.iterdir()] == ["bundle.zip"], "it wrote outside"
            return "read"

        yield attempt


ARCHIVE_TARGETS: Final[dict[str, Target]] = {
    "tar": Target(_copies, mutants(TARS, TAR_TOKENS)),
    "bundle": Target(_bundles, mutants(ZIPS, ZIP_TOKENS)),
}
