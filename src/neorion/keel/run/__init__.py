"""Tasks and their ends: crews, loops, retries, processes.

The only home of task creation. What a task does belongs elsewhere. Names load when first used: a command line that only
tries again needs no crew.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports
from neorion.keel.run.background import create_owned_task
from neorion.keel.run.fork_call import run_in_fork

if TYPE_CHECKING:
    from neorion.keel.run.backoff import Backoff, retry
    from neorion.keel.run.loop import Loop, LoopTiming, TickObserver
    from neorion.keel.run.process import only_error, run_process
    from neorion.keel.run.supervisor import Supervisor

__all__ = [
    "Backoff",
    "Loop",
    "LoopTiming",
    "Supervisor",
    "TickObserver",
    "create_owned_task",
    "only_error",
    "retry",
    "run_in_fork",
    "run_process",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "backoff": ("Backoff", "retry"),
        "supervisor": ("Supervisor",),
        "loop": ("Loop", "LoopTiming", "TickObserver"),
        "process": ("only_error", "run_process"),
    },
)
