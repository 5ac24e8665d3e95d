"""The hands of devservers: look at one server, decide, write what differs.

Everything that reaches the API server goes out from here. What should be is decided next door, in `decide`.
"""

from neorion.devservers.controllers.activity import LOOKERS, Looks
from neorion.devservers.controllers.alerts import CARRIERS, Alerts, Errand, Way
from neorion.devservers.controllers.cache import Mirrors
from neorion.devservers.controllers.default_flavors import Flavors
from neorion.devservers.controllers.devserver import Hands, Servers
from neorion.devservers.controllers.home_retention import Homes

__all__ = [
    "CARRIERS",
    "LOOKERS",
    "Alerts",
    "Errand",
    "Flavors",
    "Hands",
    "Homes",
    "Looks",
    "Mirrors",
    "Servers",
    "Way",
]
