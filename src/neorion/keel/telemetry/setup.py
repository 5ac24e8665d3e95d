"""Setup of logging: readable lines on a terminal, or JSON for machines. A process calls it once, a library never."""

import json
import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from stat import S_IMODE
from typing import Final, TextIO

from neorion.keel.telemetry.correlation import current
from neorion.keel.telemetry.log import FIELDS

# One line must not fill a disk: a longer value is cut and marked.
VALUE_CHARS_MAX: Final = 4_000
# Nor may many lines: a process's own file holds this much, and one older file as much again.
FILE_BYTES_MAX: Final = 8 << 20

# Events of neighbouring lines begin and mostly end at the same column.
_EVENT_WIDTH: Final = 30
_COLORS: Final = {"debug": "32", "info": "32", "warning": "33", "error": "31", "critical": "31"}


class LogFormat(StrEnum):
    """The format of log lines: for people, or JSON."""

    PEOPLE = "people"
    JSON = "json"


def setup(
    form: LogFormat, level: str = "info", stream: TextIO | None = None, own_file: Path | None = None
) -> None:
    """Sends every log line of the process, third parties' too, to one stream in one format.

    `own_file` is the file to which standard error of this process alone was redirected; its size is limited.
    """
    out = stream or sys.stderr
    handler = _RotatingStderr(own_file) if own_file else logging.StreamHandler(out)
    handler.setFormatter(
        JsonFormatter() if form is LogFormat.JSON else ConsoleFormatter(colored=out.isatty())
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class _RotatingStderr(logging.StreamHandler[TextIO]):
    """Standard error, redirected to a file. A full file is renamed to `<name>.old` and replaces the previous one."""

    def __init__(self, path: Path) -> None:
        super().__init__(sys.stderr)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        # A folder that is gone or a full disk must not stop the process: it goes on writing to the same file.
        with suppress(OSError):
            status = os.fstat(self.stream.fileno())
            if status.st_size > FILE_BYTES_MAX:
                self._rotate(S_IMODE(status.st_mode))

    def _rotate(self, mode: int) -> None:
        self._path.replace(self._path.with_name(f"{self._path.name}.old"))
        opened = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
        # Replaces the descriptor and not the stream, so that output of a crash goes to the new file too.
        os.dup2(opened, self.stream.fileno())
        os.close(opened)


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "event": record.getMessage(),
            **_fields(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": _time(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({name: _bounded(value) for name, value in line.items()}, default=str)


class ConsoleFormatter(logging.Formatter):
    """One readable line, and the traceback below it."""

    def __init__(self, *, colored: bool) -> None:
        super().__init__()
        self._colored = colored

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        event = _visible(record.getMessage()).ljust(_EVENT_WIDTH)
        values = " ".join(f"{name}={_visible(value)}" for name, value in _fields(record).items())
        shown = f"\x1b[{_COLORS.get(level, '0')}m{level:<8}\x1b[0m" if self._colored else f"{level:<8}"
        line = f"{_time(record)} {shown} {event} [{record.name}] {values}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """The named values that `Logger` put beside the event, and the correlation id of the request."""
    fields: dict[str, object] = dict(getattr(record, FIELDS, {}))
    if correlation := current():
        fields.setdefault("correlation", correlation)
    return fields


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _bounded(value: object) -> object:
    if isinstance(value, str) and len(value) > VALUE_CHARS_MAX:
        return f"{value[:VALUE_CHARS_MAX]}… ({len(value)} characters)"
    return value


def _visible(value: object) -> str:
    """The text of a value; its repr if it would break the line or control the terminal."""
    text = str(_bounded(value))
    return text if text.isprintable() else repr(text)
