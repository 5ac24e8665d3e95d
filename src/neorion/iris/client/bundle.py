"""The working directory as one archive: the files that git would know, the same bytes for the same files."""

import hashlib
import io
import os
import re
import stat
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from neorion.iris.client.job_names import size
from neorion.keel.base import Invalid

# Source code is far smaller; what is larger is data, and comes by storage.
BYTES_MAX: Final = 25 * 2**20
# Text shrinks to a tenth: what is larger than this cannot become small enough, and is not even tried.
_RAW_BYTES_MAX: Final = 10 * BYTES_MAX
# As many as a worker unpacks.
_FILES_MAX: Final = 50_000
_NAMED: Final = 5
# Outside of a repository nobody says what is made by machines; these are, wherever they are found.
_MADE: Final = frozenset({"__pycache__", "node_modules", "venv", "env", "site-packages", "build", "dist"})
# An archive cannot say bytes that are no text, and a worker takes a backslash for a trick.
_UNSENT: Final = re.compile(r"[\\\ud800-\udfff]")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """An archive and the hash it goes by."""

    body: bytes
    digest: str
    files: int


def bundle(folder: Path, exclude: Sequence[str]) -> Bundle:
    """Packs a folder. Too large is refused with the files that make it so."""
    if not folder.is_dir():
        raise Invalid(
            "iris.working_dir",
            f"{folder} is not a folder.",
            hint="Name the folder whose files the job needs, as in working_dir='.'.",
        )
    names = sorted(name for name in _names(folder) if not _excluded(name, exclude))
    for name in names:
        if _UNSENT.search(name):
            raise _left_out(name, "has a name that no worker takes")
    sizes = {name: (folder / name).stat().st_size for name in names}
    if len(names) > _FILES_MAX or sum(sizes.values()) > _RAW_BYTES_MAX:
        raise _too_large(folder, sizes)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            try:
                archive.writestr(_entry(folder, name), (folder / name).read_bytes())
            except OSError as error:
                raise _left_out(name, f"cannot be read: {error.strerror}") from None
            if packed.tell() > BYTES_MAX:
                raise _too_large(folder, sizes)
    body = packed.getvalue()
    return Bundle(body, hashlib.sha256(body).hexdigest(), len(names))


def _entry(folder: Path, name: str) -> zipfile.ZipInfo:
    """Only the name, the content and the right to run it matter: not when it was written, nor by whom."""
    runs = (folder / name).stat().st_mode & stat.S_IXUSR
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
    return entry


def _names(folder: Path) -> Iterator[str]:
    """Regular files, links to them included; what a link to a folder holds stays behind."""
    known = _git_names(folder)
    for name in _walk(folder) if known is None else known:
        if (folder / name).is_file():
            yield name


def _git_names(folder: Path) -> list[str] | None:
    """What git tracks and what it would offer to add; None outside of a repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: S603 -- no input of others
    except (OSError, subprocess.CalledProcessError) as error:
        if any((place / ".git").exists() for place in (folder, *folder.parents)):
            raise _unlisted(folder, error) from None
        return None
    return sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})


def _unlisted(folder: Path, error: OSError | subprocess.CalledProcessError) -> Invalid:
    """What git ignores, secrets among it, must not go along because git does not run, or does not trust the folder."""
    said: str = (
        error.stderr.decode(errors="replace") if isinstance(error, subprocess.CalledProcessError) else ""
    )
    why = said.partition("\n")[0] or "there is no git on this machine"
    return Invalid(
        "iris.bundle_git",
        f"{folder} is in a git repository, and git does not say what belongs to it: {why}.",
        hint="Let git ls-files work here, or send nothing along: --no-bundle.",
    )


def _walk(folder: Path) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _MADE]
        for name in files:
            if not name.startswith("."):
                yield (Path(here) / name).relative_to(folder).as_posix()


def _excluded(name: str, exclude: Sequence[str]) -> bool:
    """A pattern fits a path, or one part of it: "data", "*.bin" and "runs/old/*" all do what they look like."""
    path = PurePosixPath(name)
    whole = [str(path), *map(str, path.parents)][:-1]
    return any(
        fnmatchcase(text, pattern.rstrip("/")) for pattern in exclude for text in (*whole, *path.parts)
    )


def _left_out(name: str, why: str) -> Invalid:
    return Invalid(
        "iris.bundle_file",
        f"The file {name!r} {why}.",
        hint="Leave it out with .gitignore or exclude, or everything with --no-bundle.",
    )


def _too_large(folder: Path, sizes: dict[str, int]) -> Invalid:
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_NAMED]
    told = ", ".join(f"{name} ({size(sizes[name])})" for name in largest)
    return Invalid(
        "iris.bundle_large",
        f"{folder} is too large to send along: {len(sizes)} files, {size(sum(sizes.values()))}; "
        f"packed it may have {size(BYTES_MAX)}. The largest: {told}.",
        hint="Leave some out with .gitignore or exclude, or all with --no-bundle.",
    )
