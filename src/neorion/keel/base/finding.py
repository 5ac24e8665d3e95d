"""What a check found: for doctors, checkers of laws and validators alike."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters to the person who reads it."""

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
