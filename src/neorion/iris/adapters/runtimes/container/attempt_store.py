"""The attempts of the container runtime on disk: each has a folder until it is forgotten."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from neorion.iris.adapters.runtimes.container.gang import Gang
from neorion.iris.adapters.runtimes.process.protocol import ExitInfo, StartRequest
from neorion.iris.model import AttemptId, Resources
from neorion.iris.ports import Phase

_UNFINISHED: Final = ".unfinished"


class StoredOrder(Struct, frozen=True, array_like=True):
    """An accepted order. Its files are named as they lie on the worker's disk."""

    job: StartRequest
    resources: Resources
    gpus: tuple[str, ...]
    gang: Gang | None = None


class StoredAttempt(Struct, frozen=True):
    """An attempt as an earlier life of the worker left it."""

    order: StoredOrder
    phase: Phase
    stopping: bool
    end: ExitInfo | None


_ORDER: Final = msgspec.msgpack.Decoder(StoredOrder)
_END: Final = msgspec.msgpack.Decoder(ExitInfo)
_encode: Final = msgspec.msgpack.Encoder().encode


class AttemptStore:
    """A folder for each attempt. Orders and ends are on the disk before they are reported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def log(self, attempt: AttemptId) -> Path:
        return self._folder / attempt / "log"

    def result(self, attempt: AttemptId) -> Path:
        return self._folder / attempt / "result"

    def result_part(self, attempt: AttemptId) -> Path:
        """The result on its way."""
        return self._folder / attempt / f"result{_UNFINISHED}"

    def bundle(self, attempt: AttemptId) -> Path:
        """The archive of a bundle that was a directory."""
        return self._folder / attempt / "bundle.zip"

    def add(self, attempt: AttemptId) -> None:
        """Makes its folder. Without an order in it, the next life of the worker removes it."""
        (self._folder / attempt).mkdir(mode=0o700, exist_ok=True)
        self.log(attempt).touch(mode=0o600)

    def accept(self, attempt: AttemptId, order: StoredOrder) -> None:
        self._write(attempt, "order", _encode(order))

    def begun(self, attempt: AttemptId) -> None:
        (self._folder / attempt / "running").touch()

    def stopping(self, attempt: AttemptId) -> None:
        (self._folder / attempt / "stopping").touch()

    def end(self, attempt: AttemptId, end: ExitInfo) -> None:
        if end.result:
            self.result_part(attempt).replace(self.result(attempt))
        self._write(attempt, "end", _encode(end))

    def remove(self, attempt: AttemptId) -> None:
        shutil.rmtree(self._folder / attempt, ignore_errors=True)

    def load(self) -> Iterator[StoredAttempt]:
        """Every attempt whose order was written whole; what is left of others is removed."""
        for home in sorted(self._folder.iterdir()):
            try:
                order = _ORDER.decode((home / "order").read_bytes())
            except (FileNotFoundError, msgspec.DecodeError):
                shutil.rmtree(home, ignore_errors=True)
                continue
            end = home / "end"
            ended = _END.decode(end.read_bytes()) if end.exists() else None
            phase = Phase.RUNNING if (home / "running").exists() else Phase.BUILDING
            yield StoredAttempt(
                order, Phase.ENDED if ended is not None else phase, (home / "stopping").exists(), ended
            )

    def _write(self, attempt: AttemptId, name: str, data: bytes) -> None:
        path = self._folder / attempt / name
        with path.with_name(name + _UNFINISHED).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        path.with_name(name + _UNFINISHED).replace(path)
