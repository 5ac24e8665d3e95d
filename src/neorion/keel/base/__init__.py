"""Values that all packages share: units, ids, error families, findings.

Pure: nothing here may use a clock, randomness, a file, a socket or a log. Findings load when first used, because most
commands have none.
"""

from typing import TYPE_CHECKING

from neorion.keel.base.callbacks import Callbacks
from neorion.keel.base.errors import (
    FAMILIES,
    Conflict,
    Deadline,
    Denied,
    Error,
    Invalid,
    NoCapacity,
    NotFound,
    QuotaExceeded,
    Retry,
    Terminal,
    Unauthenticated,
)
from neorion.keel.base.ids import NAME_MAX, Id, is_name
from neorion.keel.base.lazy import lazy_exports
from neorion.keel.base.suggest import did_you_mean, nearest
from neorion.keel.base.units import Duration, Instant, Quantity, UnitError

if TYPE_CHECKING:
    from neorion.keel.base.finding import Finding, Severity

__all__ = [
    "FAMILIES",
    "NAME_MAX",
    "Callbacks",
    "Conflict",
    "Deadline",
    "Denied",
    "Duration",
    "Error",
    "Finding",
    "Id",
    "Instant",
    "Invalid",
    "NoCapacity",
    "NotFound",
    "Quantity",
    "QuotaExceeded",
    "Retry",
    "Severity",
    "Terminal",
    "Unauthenticated",
    "UnitError",
    "did_you_mean",
    "is_name",
    "lazy_exports",
    "nearest",
]

__getattr__ = lazy_exports(__name__, {"finding": ("Finding", "Severity")})
