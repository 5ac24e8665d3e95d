"""The writers of devservers: look at one server, decide, write what differs.

Everything that reaches the API server goes out from here. What should be is decided next door, in `decide`.
"""

from neorion.devservers.controllers.activity import PROBE_WORKERS, ActivityController
from neorion.devservers.controllers.alerts import ALERT_WORKERS, AlertChannel, AlertController, AlertDelivery
from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.controllers.default_flavors import DefaultFlavors
from neorion.devservers.controllers.devserver import DevServerController, Writers
from neorion.devservers.controllers.home_retention import HomeController
from neorion.devservers.controllers.warm_pods import WarmPodController

__all__ = [
    "ALERT_WORKERS",
    "PROBE_WORKERS",
    "ActivityController",
    "AlertChannel",
    "AlertController",
    "AlertDelivery",
    "ClusterCache",
    "DefaultFlavors",
    "DevServerController",
    "HomeController",
    "WarmPodController",
    "Writers",
]
