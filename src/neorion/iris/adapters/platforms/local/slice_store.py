"""Records of slices, one file for each, by which a later controller finds them again."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from neorion.iris.model import SliceId
from neorion.iris.ports import SliceRequest
from neorion.keel.base import Conflict, Instant
from neorion.keel.telemetry import logger

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, never to be mistaken for a later one with the same number.

    `ticks` is when it started, counted from the start of the machine; `boot` is which start of the machine that was.
    """

    pid: int
    ticks: int
    boot: str


class LocalSliceRecord(Struct, frozen=True, omit_defaults=True):
    """A slice. `births` are its workers, all of them or none; a `doomed` slice is being terminated."""

    order: SliceRequest
    created: Instant
    stuck: bool = False
    births: tuple[ProcessIdentity, ...] = ()
    failure: str = ""
    doomed: bool = False


def _plain(value: object) -> str:
    return str(value)


def _typed(kind: type[Any], value: object) -> object:
    return str.__new__(kind, value)


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_DECODER = msgspec.json.Decoder(LocalSliceRecord, dec_hook=_typed)


class SliceStore:
    """A folder that one process owns and only its user may read, because the files hold tokens.

    Files appear whole, by renaming. They are not synced: no worker outlives a power cut, so its record may be lost.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def own(self) -> int:
        """Locks the folder until the descriptor is closed."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        lock = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise Conflict(
                "iris.platform_owned",
                f"Another controller manages the slices in {self._folder}.",
                hint="Stop it first, or give this one another state_dir.",
            ) from None
        for partial in self._folder.glob("*.part"):
            partial.unlink()
        return lock

    def save(self, record: LocalSliceRecord) -> None:
        partial = self._path(record.order.id).with_suffix(".part")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(_ENCODER.encode(record))
        partial.replace(self._path(record.order.id))

    def remove(self, piece: SliceId) -> None:
        self._path(piece).unlink(missing_ok=True)

    def all(self) -> list[LocalSliceRecord]:
        """In the order of their birth, because ids sort so."""
        found: list[LocalSliceRecord] = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                found.append(_DECODER.decode(path.read_bytes()))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                log.warning("forgot a slice whose record is damaged", file=path.name, why=str(error))
                path.unlink()
        return found

    def _path(self, piece: SliceId) -> Path:
        return self._folder / f"{piece}.json"
