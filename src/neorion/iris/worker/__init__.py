"""The worker: the process on a machine that runs tasks for the controller.

Speaks to the controller and to one runtime. Which task runs where is not its business.
"""

from neorion.iris.worker.worker import CALL_TIMEOUT, Identity, WorkerDaemon

__all__ = ["CALL_TIMEOUT", "Identity", "WorkerDaemon"]
