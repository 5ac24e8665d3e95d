"""The import name users type: `from iris.client import IrisClient`, `python -m iris.cluster.controller.main serve`.

Doors only: every name here is another name for something in `neorion`. No logic.
"""

from neorion.keel.base import QuotaExceeded as QuotaExhaustedError

__all__ = ["QuotaExhaustedError"]
