"""The checks, one module for each requirement. Each drives the cluster and leaves every judgement to `decide`."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.checks.dra_support import DRA_SUPPORT
from neorion.conformance.adapters.checks.gang_scheduling import GANG_SCHEDULING
from neorion.conformance.adapters.checks.robust_controller import ROBUST_CONTROLLER

CHECKS: Final[dict[str, Check]] = {
    check.requirement: check for check in (DRA_SUPPORT, GANG_SCHEDULING, ROBUST_CONTROLLER)
}
