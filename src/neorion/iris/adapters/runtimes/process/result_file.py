"""Result file: the value or the error of a function.

A header of fixed size contains the kind and the lengths of the parts, so that a result can be stored, moved and shown
without unpickling it. The header is followed by a readable text (the traceback of an error) and the pickle.
"""

# ruff: noqa: PTH104, PTH123 -- see `layout`: plain names, plain calls

import os
import pickle
import traceback
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns
from neorion.iris.model.pickling import dump, dumps, error_dumps
from neorion.iris.model.result_format import HEAD, MAGIC, STATUSES, ResultStatus
from neorion.keel.base import Invalid, Terminal

_NOHEAD = bytes(HEAD.size)
_VALUE = int(ResultStatus.VALUE)
# A file gets its final name only when it is complete.
UNFINISHED = ".unfinished"
# An existing file is empty (`dir_cache`), because ext4 would flush a file that is truncated, written and closed.
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
# Most functions return nothing or a small value, which needs no cloudpickle and no buffers with pages to copy.
_SMALL = {type(None), bool, int, float}
# Only the end of a longer traceback is kept, because the error is there.
TEXT_BYTES_MAX = 256 << 10

# Results of longer work are flushed to the disk. After a power failure, shorter work is cheaper to repeat.
FLUSH_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class ResultHeader:
    """Header of a result file. `text` is the traceback of an error, and empty for a value."""

    status: ResultStatus
    text: str
    pickle_bytes: int


def worth_flushing(began_ns: int) -> bool:
    return boottime_ns() - began_ns >= FLUSH_NS


def write_value(path: str, value: object, *, flush: bool) -> bool:
    """Writes the value, or the error of pickling it. True if the value was written."""
    if type(value) in _SMALL and not flush:
        _write_small(path, pickle.dumps(value))
        return True
    with _unfinished(path) as out:
        out.write(_NOHEAD)
        try:
            dump(value, out)
        except BaseException as error:  # noqa: BLE001 -- any error of `__reduce__` is the task's own failure
            failure = Terminal(
                "runtime.unpicklable",
                f"The value of type {type(value).__qualname__} cannot be pickled: {_one_line(error)}",
                hint="Return plain data, or write it to storage and return its address.",
            )
            well = _write_error(out, failure, _text_of(error))
        else:
            well = _write_head(out, ResultStatus.VALUE, 0)
        _sync(out, flush=flush)
    os.rename(path + UNFINISHED, path)
    return well


def write_error(path: str, error: BaseException, *, flush: bool) -> None:
    with _unfinished(path) as out:
        _write_error(out, error, _text_of(error))
        _sync(out, flush=flush)
    os.rename(path + UNFINISHED, path)


def read_head(path: PurePath) -> ResultHeader:
    """Reads the header. Raises Invalid if the file is not a complete result."""
    with Path(path).open("rb") as file:
        return _read_head(file, path)


def load(path: PurePath) -> object:
    """Loads a value, or raises the task's error with its traceback as a note. Unpickles, so it trusts the task."""
    with Path(path).open("rb") as file:
        head = _read_head(file, path)
        value: object = pickle.load(file)  # noqa: S301 -- the caller owns the task
    if head.status is ResultStatus.VALUE:
        return value
    assert isinstance(value, BaseException)  # noqa: S101 -- only errors are written with this status
    value.add_note(f"In the task:\n{head.text}")
    raise value


def _read_head(file: BinaryIO, path: PurePath) -> ResultHeader:
    start = file.read(HEAD.size)
    if len(start) == HEAD.size:
        magic, status, text_bytes, pickle_bytes = HEAD.unpack(start)
        whole = os.fstat(file.fileno()).st_size == HEAD.size + text_bytes + pickle_bytes
        if magic == MAGIC and whole and status in STATUSES:
            return ResultHeader(
                ResultStatus(status), file.read(text_bytes).decode(errors="replace"), pickle_bytes
            )
    raise Invalid("runtime.result", f"{path.name} is not a complete result.", hint="Run the task again.")


def _write_small(path: str, data: bytes) -> None:
    fd = os.open(path + UNFINISHED, _MAKING, 0o600)
    os.write(fd, HEAD.pack(MAGIC, _VALUE, 0, len(data)) + data)
    os.close(fd)
    os.rename(path + UNFINISHED, path)


def _unfinished(path: str) -> BinaryIO:
    return open(os.open(path + UNFINISHED, _MAKING, 0o600), "wb")


def _write_error(out: BinaryIO, error: BaseException, text: bytes) -> bool:
    out.seek(0)
    out.truncate()
    out.write(_NOHEAD + text + _pickled(error))
    return _write_head(out, ResultStatus.ERROR, len(text))


def _write_head(out: BinaryIO, status: ResultStatus, text_bytes: int) -> bool:
    size = out.tell()
    out.seek(0)
    out.write(HEAD.pack(MAGIC, status, text_bytes, size - HEAD.size - text_bytes))
    return status is ResultStatus.VALUE


def _sync(out: BinaryIO, *, flush: bool) -> None:
    if flush:
        out.flush()
        os.fsync(out.fileno())


def _pickled(error: BaseException) -> bytes:
    """Pickle of the error if it can be unpickled as an error, otherwise of one that describes it."""
    try:
        return error_dumps(error)
    except BaseException as failure:  # noqa: BLE001 -- any error of `__reduce__` is the task's own failure
        why = _one_line(failure)
    replacement = Terminal(
        "runtime.unpicklable",
        f"The task raised {_one_line(error)}",
        hint=f"Raise errors that can be pickled: {why}.",
    )
    return dumps(replacement)


def _one_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[0].strip()[:500]


def _text_of(error: BaseException) -> bytes:
    return "".join(traceback.format_exception(error)).encode(errors="replace")[-TEXT_BYTES_MAX:]
