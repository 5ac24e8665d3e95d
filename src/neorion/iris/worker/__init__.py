"""Worker: the process on a machine that runs tasks for the controller.

It calls the controller and one runtime. It makes no scheduling decisions.
"""

from neorion.iris.worker.worker import CALL_TIMEOUT, Identity, WorkerDaemon

__all__ = ["CALL_TIMEOUT", "Identity", "WorkerDaemon"]
