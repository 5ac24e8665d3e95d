"""Structured logs, metrics and correlation ids of a process.

Importing this package costs next to nothing, because command lines and clients pass through it too: a server imports
`telemetry.setup` and `telemetry.metrics` where it starts.
"""

from neorion.keel.telemetry.correlation import HEADER, correlated, current
from neorion.keel.telemetry.log import Logger, logger

__all__ = ["HEADER", "Logger", "correlated", "current", "logger"]
