"""Recordings of terminal sessions as files: one for each terminal, written while the session runs."""

import codecs
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from neorion.devservers.decide.recording import Redactor, header, output_event, resize_event
from neorion.keel.base import Terminal
from neorion.keel.clock import Clock

SUFFIX: Final = ".cast"
# A program that floods a terminal does not fill the volume.
RECORDING_MAX: Final = 64 * 2**20
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TerminalInfo:
    """The terminal of a session, and the title of its recording."""

    columns: int
    rows: int
    kind: str
    title: str


class Recording:
    """The output and the sizes of one terminal. What is typed is not recorded, except where a program prints it."""

    def __init__(self, file: Path, clock: Clock, terminal: TerminalInfo) -> None:
        self._file = file
        self._clock = clock
        self._began = clock.monotonic()
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._redactor = Redactor()
        self._digest = sha256()
        self._size = 0
        started = clock.now().ns // _NS
        size = (terminal.columns or 80, terminal.rows or 24)
        self._write(header(size, started, terminal.title, {"TERM": terminal.kind}))

    @property
    def name(self) -> str:
        return self._file.stem

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def output(self, data: bytes) -> None:
        self._output(self._redactor.feed(self._decoder.decode(data)))

    def resize(self, columns: int, rows: int) -> None:
        if self._size < RECORDING_MAX:
            self._write(resize_event(self._elapsed(), columns, rows))

    def close(self) -> None:
        # A full volume has ended the session already.
        with suppress(Terminal):
            self._output(self._redactor.flush())
        os.close(self._descriptor)

    def _output(self, text: str) -> None:
        if not text or self._size >= RECORDING_MAX:
            return
        self._write(output_event(self._elapsed(), text))
        if self._size >= RECORDING_MAX:
            self._write(output_event(self._elapsed(), "\r\n[the recording ends here: it is full]\r\n"))

    def _elapsed(self) -> float:
        return self._clock.monotonic() - self._began

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._descriptor, line)
        except OSError:
            written = 0
        if written != len(line):
            raise Terminal(
                "devservers.recording_full",
                "The recording of the session cannot be written.",
                hint="Ask an administrator to free space on the bastion's volume.",
            )
        self._digest.update(line)
        self._size += len(line)


class Recordings:
    """The recordings of one process, in a folder. Without a folder nothing is recorded."""

    def __init__(self, folder: Path | None, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def open(self, name: str, terminal: TerminalInfo) -> Recording | None:
        if self._folder is None:
            return None
        try:
            return Recording(self._folder / f"{name}{SUFFIX}", self._clock, terminal)
        except OSError as error:
            raise Terminal(
                "devservers.recording_failed",
                f"The recording of the session cannot be made: {error.strerror}.",
                hint="Ask an administrator to check the bastion's volume.",
            ) from None
