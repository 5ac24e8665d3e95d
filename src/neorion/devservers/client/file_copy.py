"""Files to and from a server, as one archive over the streams of a command."""

import struct
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import anyio
from anyio import to_thread
from msgspec import Struct

from neorion.devservers.client.api import DevServerApi
from neorion.devservers.client.pod_access import container, exec_stream
from neorion.keel.base import Invalid, NotFound, Terminal
from neorion.keel.kube.streams import ContainerRef, ExecSession, OutputStream, execute, run
from neorion.keel.run import only_error

# What is read and sent in one go.
_PIECE = 256 * 1024
# Of what tar complains.
_COMPLAINT_MAX = 64 * 1024
# The one link that was named is followed, as it means nothing on another machine; those in a folder stay links.
_PACK = """
export LC_ALL=C
if [ -d "$1/$2" ]; then exec tar -cf - -C "$1" -- "$2/."; fi
exec tar -chf - -C "$1" -- "$2"
"""
# Messages of GNU tar, with code 1, about files that change while they are read. The copy has a state of that moment.
_LIVE = ("file changed as we read it", "File removed before we read it")


async def copy_to(fleet: DevServerApi, name: str, source: Path, target: str) -> None:
    """A file or a folder, as `cp -r` does: into `target` where that is a folder or ends as one, else under that name."""
    if not source.exists():
        raise NotFound("devservers.no_file", f"There is no {source} here.", hint="Check the path.")
    where = await container(fleet, name)
    path = PurePosixPath(target or ".")
    inside = target.endswith("/") or (await run(fleet.client, where, ["test", "-d", str(path)])).code == 0
    folder, called = (path, _name(source)) if inside else (path.parent, path.name)
    with tempfile.TemporaryFile() as archive:
        await to_thread.run_sync(_pack, source.resolve(), called, archive)
        await _unpack_there(fleet, where, str(folder), archive)


class SkippedEntry(Struct, frozen=True):
    """An entry that was not copied: a link that leads out of the copy to `target`, or a special file if that is empty."""

    path: str
    target: str


async def copy_from(fleet: DevServerApi, name: str, source: str, target: Path) -> tuple[SkippedEntry, ...]:
    """Copies a file or a folder of the server. Returns entries that were skipped, because no link may lead out of `target`.

    Nothing at all is written where the server names a file outside of what was asked for.
    """
    where = await container(fleet, name)
    path = PurePosixPath(source)
    if not path.name or path.name == "..":
        raise Invalid(
            "devservers.path", f'"{source}" names no file or folder.', hint="Name one, such as data/a.txt."
        )
    with tempfile.TemporaryFile() as archive:
        await _pack_there(fleet, where, path, archive)
        folder, called = (target, path.name) if target.is_dir() else (target.parent, target.name)
        return await to_thread.run_sync(unpack, archive, path.name, folder, called)


def unpack(archive: BinaryIO, root: str, folder: Path, called: str) -> tuple[SkippedEntry, ...]:
    """Unpacks the tree `root` of an untrusted archive as `folder`/`called`. A name that leads out refuses all of it."""
    archive.seek(0)
    if not folder.is_dir():
        raise NotFound("devservers.no_folder", f"There is no folder {folder} here.", hint="Make it first.")
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            sieve = _TarFilter(folder)
            members = sieve.sifted(_renamed(member, root, called) for member in tar)
            # Once more: links that are there by now may lead elsewhere together than each alone.
            tar.extractall(folder, members, filter=lambda one, _: sieve.passed(one))  # noqa: S202 -- sifted by the data filter
    except (tarfile.FilterError, _OutsideTree) as error:
        raise Invalid(
            "devservers.outside",
            f"The server sent a name that leads out of {folder}: {error}",
            hint="Copy a part of it that has no such name.",
        ) from None
    except _MALFORMED as error:
        raise Terminal(
            "devservers.archive", f"The server sent a malformed archive: {error}.", hint="Copy it again."
        ) from None
    except OSError as error:
        raise Terminal(
            "devservers.unpack",
            f"The copy cannot be written to {folder}: {error.strerror or error}.",
            hint="Check the names on the server, and the space and rights here.",
        ) from error
    return tuple(sieve.left)


# What the library raises for damaged headers, and for links to files that are not in the archive.
_MALFORMED = (tarfile.TarError, KeyError, ValueError, OverflowError, EOFError, struct.error)


class _TarFilter:
    """Lets through what stays inside `folder`, and keeps count of what does not."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._links: set[str] = set()
        self._missing: set[str] = set()
        self.left: list[SkippedEntry] = []

    def sifted(self, members: Iterable[tarfile.TarInfo]) -> list[tarfile.TarInfo]:
        passed: list[tarfile.TarInfo] = []
        for member in members:
            # tar never packs files behind a link. Such an archive was made to write elsewhere.
            if any(str(parent) in self._links for parent in PurePosixPath(member.name).parents):
                raise _OutsideTree(member.name)
            if self.passed(member) is None:
                continue
            passed.append(member)
            if member.issym():
                self._links.add(member.name)
        return passed

    def passed(self, member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        """Raises where the name itself leads out."""
        try:
            # A second name of what is missing is missing as well.
            if not (member.islnk() and member.linkname in self._missing):
                return tarfile.data_filter(member, self._folder)
        except (
            tarfile.AbsoluteLinkError,
            tarfile.LinkOutsideDestinationError,
            tarfile.SpecialFileError,
        ):
            pass
        self._missing.add(member.name)
        self.left.append(SkippedEntry(member.name, member.linkname))
        return None


class _OutsideTree(Exception):
    """A member that is not part of the tree that was asked for."""


def _renamed(member: tarfile.TarInfo, root: str, called: str) -> tarfile.TarInfo:
    parts = PurePosixPath(member.name).parts
    if not parts or parts[0] != root or ".." in parts:
        raise _OutsideTree(member.name)
    name = str(PurePosixPath(called, *parts[1:]))
    if not member.islnk():
        return member.replace(name=name, deep=False)
    # A hard link names another member, which is renamed as well.
    linked = PurePosixPath(member.linkname).parts
    if not linked or linked[0] != root:
        raise _OutsideTree(member.linkname)
    return member.replace(name=name, linkname=str(PurePosixPath(called, *linked[1:])), deep=False)


def _name(source: Path) -> str:
    """Name of the source in the archive. For "." and ".." it is the folder's real name."""
    return source.name if source.name not in ("", "..") else source.resolve().name


def _pack(source: Path, called: str, archive: BinaryIO) -> None:
    with tarfile.open(fileobj=archive, mode="w:") as tar:
        tar.add(source, arcname=called, filter=_nobodys)
    archive.seek(0)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owners of this machine mean nothing on the other."""
    return member.replace(uid=0, gid=0, uname="", gname="", deep=False)


async def _unpack_there(fleet: DevServerApi, where: ContainerRef, folder: str, archive: BinaryIO) -> None:
    complaint = bytearray()
    # tar ends with the archive, cat with the input: what is sent to a pod whose command has ended breaks the connection.
    script = 'mkdir -p -- "$1" && tar -xf - --no-same-owner -C "$1" && cat > /dev/null'
    async with exec_stream(fleet.client, where, ["/bin/sh", "-c", script, "cp", folder]) as process:
        try:
            # Side by side: tar would wait for us to hear what it complains of, and we for it to take more.
            async with anyio.create_task_group() as group:
                group.start_soon(_give, process, archive)
                async for output in process:
                    complaint += output.data[: _COMPLAINT_MAX - len(complaint)]
                group.cancel_scope.cancel()
        except BaseExceptionGroup as several:
            raise only_error(several) from None
    _check(process.code, complaint.decode(errors="replace"))


async def _give(process: ExecSession, archive: BinaryIO) -> None:
    while piece := await to_thread.run_sync(archive.read, _PIECE):
        await process.write(piece)
    await process.close_stdin()


async def _pack_there(
    fleet: DevServerApi, where: ContainerRef, path: PurePosixPath, archive: BinaryIO
) -> None:
    complaint = bytearray()
    command = ["/bin/sh", "-c", _PACK, "cp", str(path.parent), path.name]
    # Without an input: the kubelet drops what it has yet to send when something arrives after the command's end.
    async with execute(fleet.client, where, command) as process:
        async for output in process:
            if output.stream is OutputStream.STDOUT:
                await to_thread.run_sync(archive.write, output.data)
            else:
                complaint += output.data[: _COMPLAINT_MAX - len(complaint)]
    told = complaint.decode(errors="replace")
    if not is_only_live(process.code, told):
        _check(process.code, told)


def is_only_live(code: int | None, complaint: str) -> bool:
    """Reports whether tar packed everything, and warned only about files that changed meanwhile."""
    return code == 1 and bool(complaint) and all(line.endswith(_LIVE) for line in complaint.splitlines())


def _check(code: int | None, complaint: str) -> None:
    if code:
        told = complaint.strip().partition("\n")[0] or f"tar ended with {code}"
        raise Terminal(
            "devservers.copy",
            f"The files could not be copied: {told}.",
            hint="Check the path on the server, and that its image has tar.",
        )
