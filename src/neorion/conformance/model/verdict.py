"""What a check can conclude, what a product can claim, and where the evidence comes from."""

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
    """Where an observation was made. Only hardware proves device isolation, drivers and device metrics."""

    HARDWARE = "hardware"
    EMULATED = "real-kubelet+emulated device"
    SIMULATED = "simulated node"


class Status(StrEnum):
    """What PRODUCT.yaml says about a requirement."""

    IMPLEMENTED = "Implemented"
    PARTIAL = "Partially Implemented"
    MISSING = "Not Implemented"
    NOT_APPLICABLE = "N/A"
    EMPTY = ""
