"""The conclusions of a check, the claims of a product, and the sources of evidence."""

from enum import StrEnum


class Verdict(StrEnum):
    """The conclusion of one check."""

    PASS = "PASS"  # noqa: S105 -- a verdict, no password
    FAIL = "FAIL"
    # The check itself could not run.
    ERROR = "ERROR"
    # Left out on request, or a part that the check needs is not installed.
    SKIP = "SKIP"
    # The condition of the requirement is proven absent.
    NOT_APPLICABLE = "NOT-APPLICABLE"
    # The kind of device is not known.
    UNKNOWN = "UNKNOWN"
    # The negative control did not trip, so a pass proves nothing.
    INCONCLUSIVE = "INCONCLUSIVE"


class Environment(StrEnum):
    """The source of an observation. Only hardware proves device isolation, drivers and device metrics."""

    HARDWARE = "hardware"
    EMULATED = "real-kubelet+emulated device"
    SIMULATED = "simulated node"


class Status(StrEnum):
    """The status of a requirement in PRODUCT.yaml."""

    IMPLEMENTED = "Implemented"
    PARTIAL = "Partially Implemented"
    MISSING = "Not Implemented"
    NOT_APPLICABLE = "N/A"
    EMPTY = ""
