"""Findings: the results of doctors, invariant checkers and validators."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding for the person who reads it."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one subject, and what to do about it."""

    severity: Severity
    code: str
    subject: str
    sentence: str
    hint: str = ""
