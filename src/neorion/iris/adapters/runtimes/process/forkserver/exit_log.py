"""Log of the ends of attempts, written before they are reported."""

import errno
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from neorion.iris.adapters.runtimes.process.protocol import ExitInfo

_HEAD = 8
# Records of forgotten attempts in the file before it is rewritten.
DEAD_MAX = 4096


class ExitRecord(msgspec.Struct, frozen=True, array_like=True):
    """End of one attempt."""

    attempt: str
    ended: ExitInfo


class ExitLog:
    """File of ends. Written records survive the exit of all processes; durable ones also survive a power failure.

    A record is its length, its checksum and its bytes. A torn record at the end of the file is dropped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encoder = msgspec.msgpack.Encoder()
        self._live = {record.attempt: record for record in self._read()}
        self._dead = 0
        self._unwritten = bytearray()
        self._size = 0
        self._durable = False
        self._fd = self._rewrite()

    @property
    def ends(self) -> dict[str, ExitInfo]:
        return {attempt: record.ended for attempt, record in self._live.items()}

    def append(self, attempt: str, ended: ExitInfo, *, durable: bool) -> None:
        record = ExitRecord(attempt, ended)
        self._live[attempt] = record
        self._unwritten += self._framed(record)
        self._durable |= durable

    def forget(self, attempt: str) -> None:
        """Drops an end in memory only, because an attempt without a directory counts as forgotten."""
        if self._live.pop(attempt, None) is not None:
            self._dead += 1

    def write(self) -> None:
        """Writes all ends since the last call. Raises OSError if the disk is full, and then keeps them."""
        if self._dead > DEAD_MAX and self._dead > len(self._live):
            os.close(self._fd)
            self._fd = self._rewrite()
        elif self._unwritten:
            self._append()
            if self._durable:
                os.fdatasync(self._fd)
        self._unwritten.clear()
        self._durable = False

    def _append(self) -> None:
        written = os.write(self._fd, self._unwritten)
        if written < len(self._unwritten):
            # A partial record would hide all records after it.
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += written

    def _rewrite(self) -> int:
        """Writes the live records to a new file, which replaces the old one atomically."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as out:
            self._size = out.write(b"".join(self._framed(record) for record in self._live.values()))
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(self._path)
        parent = os.open(self._path.parent, os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)
        self._dead = 0
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _framed(self, record: ExitRecord) -> bytes:
        body = self._encoder.encode(record)
        return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body

    def _read(self) -> Iterator[ExitRecord]:
        data = self._path.read_bytes() if self._path.exists() else b""
        decoder = msgspec.msgpack.Decoder(ExitRecord)
        at = 0
        while at + _HEAD <= len(data):
            length = int.from_bytes(data[at : at + 4], "big")
            body = data[at + _HEAD : at + _HEAD + length]
            if len(body) < length or zlib.crc32(body) != int.from_bytes(data[at + 4 : at + _HEAD], "big"):
                return
            yield decoder.decode(body)
            at += _HEAD + length
