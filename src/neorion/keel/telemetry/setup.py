"""How log lines look: for people on a terminal, or as JSON for machines. Called once by a process, never by a library."""

import logging
import sys
from enum import StrEnum
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from neorion.keel.telemetry.correlation import current
from neorion.keel.telemetry.log import FIELDS

# One line must not fill a disk: a longer value is cut, and says so.
VALUE_CHARS_MAX = 4_000


class Form(StrEnum):
    """Who reads the log."""

    PEOPLE = "people"
    JSON = "json"


def setup(form: Form, level: str = "info", stream: TextIO | None = None) -> None:
    """Sends every log line of the process, third parties' too, to one stream in one form."""
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    shared: list[Processor] = [
        _fields,
        _correlation,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _bounded,
    ]
    if form is Form.JSON:
        last: list[Processor] = [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    else:
        last = [structlog.dev.ConsoleRenderer(colors=out.isatty())]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _fields(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The named values that `Logger` put beside the event."""
    record = event.get("_record")
    for name, value in getattr(record, FIELDS, {}).items():
        event.setdefault(name, value)
    return event


def _correlation(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    if correlation := current():
        event["correlation"] = correlation
    return event


def _bounded(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for name, value in event.items():
        if isinstance(value, str) and len(value) > VALUE_CHARS_MAX:
            event[name] = f"{value[:VALUE_CHARS_MAX]}… ({len(value)} characters)"
    return event
