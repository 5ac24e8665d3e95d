"""Loggers for structured lines: one event, and named values beside it, never inside it.

    log = logger(__name__)
    log.info("task lost", task=task.id, worker=worker.id)

Front only: it costs what the standard library costs. `setup` decides how lines look.
"""

import logging
from typing import Final

_ROOT: Final = "neorion."
FIELDS: Final = "neorion_fields"


class Logger:
    """A logger named after its module, so that a line points at the source."""

    __slots__ = ("_out",)

    def __init__(self, name: str) -> None:
        self._out = logging.getLogger(name)

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write(logging.ERROR, event, fields)

    def failure(self, event: str, error: BaseException, **fields: object) -> None:
        """An error with its traceback."""
        self._write(logging.ERROR, event, fields, error)

    def _write(
        self, level: int, event: str, fields: dict[str, object], error: BaseException | None = None
    ) -> None:
        if self._out.isEnabledFor(level):
            # The event goes in as an argument, so that a % in it is a percent sign.
            self._out.log(level, "%s", event, exc_info=error, extra={FIELDS: fields}, stacklevel=3)


def logger(module: str) -> Logger:
    """The logger of a module: `neorion.keel.store.sqlite` logs as `keel.store.sqlite`."""
    return Logger(module.removeprefix(_ROOT))
