"""Archive of the working directory: the files that git tracks or would add. Equal files give equal bytes."""

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

# Source code is far smaller. Larger files are data, and belong in storage.
BYTES_MAX: Final = 25 * 2**20
# Text compresses to about a tenth: a larger folder cannot fit, so compression is not attempted.
_RAW_BYTES_MAX: Final = 10 * BYTES_MAX
# The same limit as the worker's.
_FILES_MAX: Final = 50_000
_LARGEST_SHOWN: Final = 5
# Generated folders: outside of a repository no .gitignore excludes them.
_GENERATED_FOLDERS: Final = frozenset(
    {"__pycache__", "node_modules", "venv", "env", "site-packages", "build", "dist"}
)
# An archive cannot store names that are not text, and a worker refuses a backslash.
_INVALID_NAME: Final = re.compile(r"[\\\ud800-\udfff]")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """An archive and its hash."""

    body: bytes
    digest: str
    files: int


def bundle(folder: Path, exclude: Sequence[str]) -> Bundle:
    """Packs a folder. A folder that is too large is refused, with its largest files."""
    if not folder.is_dir():
        raise Invalid(
            "iris.working_dir",
            f"{folder} is not a folder.",
            hint="Name the folder whose files the job needs, as in working_dir='.'.",
        )
    names = sorted(name for name in _names(folder) if not _excluded(name, exclude))
    for name in names:
        if _INVALID_NAME.search(name):
            raise _unpackable(name, "has a backslash or bytes that are not text in its name")
    sizes = {name: (folder / name).stat().st_size for name in names}
    if len(names) > _FILES_MAX or sum(sizes.values()) > _RAW_BYTES_MAX:
        raise _too_large(folder, sizes)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            try:
                archive.writestr(_entry(folder, name), (folder / name).read_bytes())
            except OSError as error:
                raise _unpackable(name, f"cannot be read: {error.strerror}") from None
            if packed.tell() > BYTES_MAX:
                raise _too_large(folder, sizes)
    body = packed.getvalue()
    return Bundle(body, hashlib.sha256(body).hexdigest(), len(names))


def _entry(folder: Path, name: str) -> zipfile.ZipInfo:
    """Keeps the name and the execute permission. Time and owner are left out, so that equal files give equal bytes."""
    runs = (folder / name).stat().st_mode & stat.S_IXUSR
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
    return entry


def _names(folder: Path) -> Iterator[str]:
    """Yields regular files and links to files. Links to folders are not followed."""
    listed = _git_names(folder)
    for name in _walk(folder) if listed is None else listed:
        if (folder / name).is_file():
            yield name


def _git_names(folder: Path) -> list[str] | None:
    """Files that git tracks or would add; None outside of a repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: S603 -- no input of others
    except (OSError, subprocess.CalledProcessError) as error:
        if any((parent / ".git").exists() for parent in (folder, *folder.parents)):
            raise _git_failed(folder, error) from None
        return None
    return sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})


def _git_failed(folder: Path, error: OSError | subprocess.CalledProcessError) -> Invalid:
    """Error when git cannot list the files. Packing all of them could send ignored files, such as secrets."""
    stderr: str = (
        error.stderr.decode(errors="replace") if isinstance(error, subprocess.CalledProcessError) else ""
    )
    why = stderr.partition("\n")[0] or "git is not installed"
    return Invalid(
        "iris.bundle_git",
        f"{folder} is in a git repository, but git cannot list its files: {why}.",
        hint="Make `git ls-files` work in this folder, or send no files with --no-bundle.",
    )


def _walk(folder: Path) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _GENERATED_FOLDERS]
        for name in files:
            if not name.startswith("."):
                yield (Path(here) / name).relative_to(folder).as_posix()


def _excluded(name: str, exclude: Sequence[str]) -> bool:
    """True if a pattern matches the path, a parent or one part of it, e.g. "data", "*.bin" or "runs/old/*"."""
    path = PurePosixPath(name)
    whole = [str(path), *map(str, path.parents)][:-1]
    return any(
        fnmatchcase(text, pattern.rstrip("/")) for pattern in exclude for text in (*whole, *path.parts)
    )


def _unpackable(name: str, why: str) -> Invalid:
    return Invalid(
        "iris.bundle_file",
        f"The file {name!r} {why}.",
        hint="Exclude it with .gitignore or exclude, or send no files with --no-bundle.",
    )


def _too_large(folder: Path, sizes: dict[str, int]) -> Invalid:
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_LARGEST_SHOWN]
    listed = ", ".join(f"{name} ({size(sizes[name])})" for name in largest)
    return Invalid(
        "iris.bundle_large",
        f"{folder} is too large to send: {len(sizes)} files, {size(sum(sizes.values()))}. "
        f"The limit is {size(BYTES_MAX)} compressed. Largest files: {listed}.",
        hint="Exclude files with .gitignore or exclude, or send no files with --no-bundle.",
    )
