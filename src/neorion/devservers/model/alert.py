"""Warnings before a server stops."""

from dataclasses import dataclass
from datetime import datetime

from neorion.devservers.model.status import StopReason


@dataclass(frozen=True, slots=True)
class Alert:
    """One warning: whose server stops, when and why, and the sentence that says so."""

    server: str
    namespace: str
    owner: str
    stops: datetime
    reason: StopReason
    text: str
