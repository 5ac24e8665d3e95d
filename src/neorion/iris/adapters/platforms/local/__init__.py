"""Slices on this machine: each of their machines is a worker process in a session of its own, its GPUs are numbers.

Knows processes and nothing of tasks: what a worker runs is the worker's, and ends with it.
"""

from neorion.iris.adapters.platforms.local.machine import Cleanup, Launch, LocalMachine, worker_command
from neorion.iris.adapters.platforms.local.platform import LocalPlatform, LocalSettings

__all__ = ["Cleanup", "Launch", "LocalMachine", "LocalPlatform", "LocalSettings", "worker_command"]
