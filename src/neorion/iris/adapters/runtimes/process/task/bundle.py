"""Unpacks the files of a job. The whole archive is checked before the first byte is written."""

import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from neorion.keel.base import Invalid

# Limits for a workspace of source files. Datasets belong in storage.
ENTRIES_MAX = 50_000
BYTES_MAX = 4 << 30
NAME_BYTES_MAX = 1024
# Limit of file systems for one component of a path.
PART_BYTES_MAX = 255
# Text compresses to a tenth; a thousandth is a zip bomb. Up to 250 MiB any ratio is allowed, e.g. for a log of
# equal lines or an array of zeros.
RATIO_MAX = 200
RATIO_FREE_BYTES = 256 << 20
_ENCRYPTED = 0x1
# Other methods raise OSError for damaged content, and no bundle uses them.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Errors of the library for damaged directories, names and content.
_DAMAGED = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError),
    *(UnicodeDecodeError, struct.error, zlib.error),
)


def unpack(source: Path, target: Path) -> None:
    """Unpacks a zip archive, or copies a directory, into the empty folder `target`."""
    if source.is_dir():
        _copy(source, target)
        return
    try:
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            _check_entries(entries)
            for entry in entries:
                _extract(archive, entry, target)
    except _DAMAGED as error:
        raise _refused(f"it is damaged ({error})") from error


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > ENTRIES_MAX:
        raise _refused(f"it has {len(entries)} entries, {ENTRIES_MAX} at most")
    size, packed = sum(entry.file_size for entry in entries), sum(entry.compress_size for entry in entries)
    if size > BYTES_MAX:
        raise _refused(f"it unpacks to {size} bytes, {BYTES_MAX} at most")
    if size > RATIO_FREE_BYTES and size > RATIO_MAX * packed:
        raise _refused(f"it unpacks to {size // max(packed, 1)} times its size, {RATIO_MAX} times at most")
    for entry in entries:
        _check_entry(entry)
    _check_names(entries)


def _check_entry(entry: zipfile.ZipInfo) -> None:
    # `orig_filename` is the archive's own text, before the library cuts it at a zero byte.
    name = entry.orig_filename
    path = PurePosixPath(name)
    # A digit before a colon, as in a time of day, is not a drive.
    drive = name[1:2] == ":" and name[:1].isalpha()
    unsafe = "\\" in name or "\0" in name or drive or len(name.encode()) > NAME_BYTES_MAX
    if unsafe or path.is_absolute() or ".." in path.parts or not path.parts:
        raise _refused(f"the name {name[:100]!r} leads out of the working directory")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused(f"{name[:100]!r} is neither a file nor a directory")
    if any(len(part.encode()) > PART_BYTES_MAX for part in path.parts):
        raise _refused(f"the name {name[:100]!r} is too long")
    if entry.header_offset < 0 or entry.compress_type not in _METHODS:
        raise _refused(f"{name[:100]!r} is damaged, or is neither stored nor deflated")
    if entry.flag_bits & _ENCRYPTED:
        raise _refused(f"{name[:100]!r} is encrypted")


def _check_names(entries: Iterable[zipfile.ZipInfo]) -> None:
    """Refuses duplicate files, and files where another entry needs a directory."""
    files = set[PurePosixPath]()
    directories = set[PurePosixPath]()
    for entry in entries:
        path = PurePosixPath(entry.filename)
        directories.update(path.parents)
        if entry.is_dir():
            directories.add(path)
        elif path in files:
            raise _refused(f"{entry.filename[:100]!r} occurs twice")
        else:
            files.add(path)
    if both := files & directories:
        raise _refused(f"{str(both.pop())[:100]!r} is a file and a directory")


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    path = target / entry.filename
    if entry.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o755 if entry.external_attr >> 16 & stat.S_IXUSR else 0o644
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    # The library reads at most the declared size, which was checked, and verifies the checksum at the end.
    with os.fdopen(fd, "wb") as out, archive.open(entry) as packed:
        shutil.copyfileobj(packed, out, 1 << 20)


def _copy(source: Path, target: Path) -> None:
    files = list[Path]()
    size = 0
    for folder, folders, names in os.walk(source):
        for name in folders + names:
            path = Path(folder, name)
            status = path.lstat()
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise _refused(f"{name[:100]!r} is neither a file nor a directory")
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
            files.append(path)
        if len(files) > ENTRIES_MAX or size > BYTES_MAX:
            raise _refused(f"it has more than {ENTRIES_MAX} entries or {BYTES_MAX} bytes")
    for path in files:
        beside = target / path.relative_to(source)
        if path.is_dir():
            beside.mkdir()
        else:
            shutil.copy(path, beside, follow_symlinks=False)


def _refused(why: str) -> Invalid:
    return Invalid(
        "runtime.bundle", f"The bundle is refused: {why}.", hint="Make a new bundle and submit again."
    )
