"""What a process says of itself: structured logs, metrics, correlation ids.

Imports nothing heavy until a process asks for it: command lines and clients pass through here too.
"""

from neorion.keel.telemetry.correlation import correlated, current
from neorion.keel.telemetry.log import Logger, logger

__all__ = ["Logger", "correlated", "current", "logger"]
