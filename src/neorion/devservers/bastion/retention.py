"""Deletes rotated audit logs and recordings whose time is over."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neorion.devservers.bastion.audit_log import AuditLog
from neorion.devservers.bastion.recordings import SUFFIX
from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

SWEEP_EVERY: Final = Duration.of(hours=1)
_DAY_S: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class Retention:
    """Days that rotated logs and recordings are kept, and the bytes that all recordings may have together."""

    days: int = 90
    recordings_bytes: int = 5 * 2**30


def sweep(audit: AuditLog, recordings: Path | None, keep: Retention, clock: Clock) -> list[Path]:
    """Deletes what is too old, and the oldest recordings beyond their bytes. Returns the deleted files.

    Logs are never deleted for their size, so that no user can drive a record out.
    """
    oldest = clock.now().ns / 1e9 - keep.days * _DAY_S
    casts = sorted(recordings.glob(f"*{SUFFIX}"), key=_written) if recordings is not None else []
    gone = [one for one in (*audit.rotated(), *casts) if _written(one) < oldest]
    left = [one for one in casts if one not in gone]
    excess = sum(map(_size, left)) - keep.recordings_bytes
    for one in left:
        if excess <= 0:
            break
        gone.append(one)
        excess -= _size(one)
    return _delete(gone)


def _delete(files: Iterable[Path]) -> list[Path]:
    done: list[Path] = []
    for one in files:
        one.unlink(missing_ok=True)
        log.info("deleted by retention", file=one.name)
        done.append(one)
    return done


def _written(file: Path) -> float:
    return file.stat().st_mtime


def _size(file: Path) -> int:
    return file.stat().st_size
