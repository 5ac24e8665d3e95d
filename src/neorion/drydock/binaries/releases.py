"""Fetches published programs, and keeps only those that match the published checksums."""

import hashlib
import platform
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Final

import aiohttp
import anyio
from anyio import to_thread

from neorion.drydock.binaries.products import Product, Release
from neorion.drydock.binaries.subprocesses import Tell
from neorion.keel.base import Retry, Terminal

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
# Programs of a hundred megabytes over slow lines: the download may take any time while data arrives.
_PATIENCE: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)
_PIECE: Final = 1 << 20


async def fetch(product: Product, release: Release, folder: Path, tell: Tell) -> None:
    """Fetches all programs of a product into a folder."""
    # With the proxies of the environment.
    async with aiohttp.ClientSession(timeout=_PATIENCE, trust_env=True) as session:
        for program in product.programs:
            words = _placeholders(product, program)
            address = release.address.format_map(words)
            tell(f"fetching {program} {product.version}")
            came = folder / f"{program}.part"
            found = await _download(session, address, came)
            if release.sums:
                sums = await _text(session, release.sums.format_map({**words, "address": address}))
                _compare(address, sums, found)
            await to_thread.run_sync(_unpack, came, release.member.format_map(words), folder / program)


def _placeholders(product: Product, program: str) -> Mapping[str, str]:
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise Terminal(
            "drydock.no_release",
            f"No programs are published for {machine}.",
            hint=f"Build it: neorion drydock build {product.name}",
        )
    return {
        "program": program,
        "version": product.version,
        "number": product.version.removeprefix("v"),
        "arch": _ARCHITECTURES[machine],
    }


async def _download(session: aiohttp.ClientSession, address: str, target: Path) -> str:
    """Returns the checksum of the downloaded file."""
    found = hashlib.sha256()
    try:
        async with session.get(address) as answer, await anyio.open_file(target, "wb") as file:
            answer.raise_for_status()
            async for piece in answer.content.iter_chunked(_PIECE):
                found.update(piece)
                await file.write(piece)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _unreached(address, error) from error
    return found.hexdigest()


async def _text(session: aiohttp.ClientSession, address: str) -> str:
    try:
        async with session.get(address) as answer:
            answer.raise_for_status()
            return await answer.text()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _unreached(address, error) from error


def _unreached(address: str, error: Exception) -> Retry:
    why = f"{error.status} {error.message}" if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return Retry(
        "drydock.release_unreached",
        f"{address} cannot be fetched: {why or type(error).__name__}.",
        hint="Check that this machine reaches it, or build instead: leave --released out.",
    )


def _compare(address: str, sums: str, found: str) -> None:
    """Compares a checksum. A file of checksums has one line for each file, or a single checksum."""
    name = PurePosixPath(address).name
    lines = [line.split() for line in sums.splitlines() if line.strip()]
    published = [
        words[0] for words in lines if len(words) == 1 or PurePosixPath(words[-1].lstrip("*")).name == name
    ]
    if published != [found]:
        raise Terminal(
            "drydock.release_sum",
            f"The checksum of {address} does not match; the file was deleted.",
            hint="Try again; or build instead: leave --released out.",
        )


def _unpack(came: Path, member: str, program: Path) -> None:
    """Stores the program, from the file itself or from an archive."""
    if member:
        with (
            tarfile.open(came) as archive,
            _packed(archive, member) as packed,
            program.open("wb") as file,
        ):
            shutil.copyfileobj(packed, file)
        came.unlink()
    else:
        came.replace(program)
    program.chmod(0o755)


def _packed(archive: tarfile.TarFile, member: str) -> IO[bytes]:
    try:
        packed = archive.extractfile(member)
    except KeyError:
        packed = None
    if packed is None:
        raise Terminal(
            "drydock.release_lacks",
            f"The released archive has no program {member}.",
            hint="Build it instead: leave --released out.",
        )
    return packed
