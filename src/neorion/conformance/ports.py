"""The outside that conformance needs."""

from collections.abc import Mapping
from typing import Protocol


class Recorder(Protocol):
    """Takes every fact of a run, in order. What it takes is redacted before it is kept."""

    def record(self, kind: str, fields: Mapping[str, object]) -> None:
        """Keeps one fact. `kind` says what it is: request, event, assertion, control, result."""
        ...
