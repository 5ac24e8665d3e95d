"""Records of conformance: requirements, verdicts, results, products and profiles. Pure values.

No rule about them is here: those are in `decide`. No input or output, but for the data files of this package.
"""

from neorion.conformance.model.product import PLACEHOLDER, Entry, Metadata, Product
from neorion.conformance.model.profile import AcceleratorProfile, builtin_profile, builtin_profiles
from neorion.conformance.model.requirement import (
    VERSIONS,
    Category,
    Level,
    Requirement,
    requirement_ids,
    requirement_named,
    requirements,
)
from neorion.conformance.model.result import Assertion, CheckPlan, CheckResult, Control, Outcome, Run
from neorion.conformance.model.verdict import Environment, Status, Verdict

__all__ = [
    "PLACEHOLDER",
    "VERSIONS",
    "AcceleratorProfile",
    "Assertion",
    "Category",
    "CheckPlan",
    "CheckResult",
    "Control",
    "Entry",
    "Environment",
    "Level",
    "Metadata",
    "Outcome",
    "Product",
    "Requirement",
    "Run",
    "Status",
    "Verdict",
    "builtin_profile",
    "builtin_profiles",
    "requirement_ids",
    "requirement_named",
    "requirements",
]
