"""The hands of devservers: look at one server, decide, write what differs.

Everything that reaches the API server goes out from here. What should be is decided next door, in `decide`.
"""

from neorion.devservers.controllers.activity import LOOKERS, ActivityController
from neorion.devservers.controllers.alerts import CARRIERS, AlertChannel, AlertController, AlertDelivery
from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.controllers.default_flavors import DefaultFlavors
from neorion.devservers.controllers.devserver import DevServerController, Writers
from neorion.devservers.controllers.home_retention import HomeController
from neorion.devservers.controllers.warm_pods import WarmPodController

__all__ = [
    "CARRIERS",
    "LOOKERS",
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
