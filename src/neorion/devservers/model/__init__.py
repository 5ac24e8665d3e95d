"""The words of devservers: the six custom resources, half by half, and the forms people write in them.

Pure. The definitions that a cluster is given (`infra/devservers/crds`) are written from these types. What a command line
does not read loads when first used.
"""

from typing import TYPE_CHECKING

from neorion.devservers.model.field_types import GROUP, NAME_MAX, VERSION
from neorion.devservers.model.flavor import (
    Deprecated,
    DevServerFlavorSpec,
    DevServerFlavorStatus,
    FlavorLimits,
    Price,
    Resources,
    Toleration,
)
from neorion.devservers.model.spec import (
    Backend,
    DevServerSpec,
    Distributed,
    HomeVolume,
    Lifecycle,
    Mode,
    OnExpire,
    Port,
    QueueRef,
    RankHomes,
    Schedule,
    Ssh,
    VolumeMount,
)
from neorion.devservers.model.status import (
    Activity,
    AppliedFlavor,
    Condition,
    ConditionType,
    Cost,
    Deadline,
    DevServerStatus,
    Phase,
    QueueStatus,
    Rank,
    StopReason,
)
from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.devservers.model.alert import Alert
    from neorion.devservers.model.crds import (
        DEV_SERVER,
        DEV_SERVER_FLAVOR,
        DEV_SERVER_LOGIN_POLICY,
        DEV_SERVER_SESSION,
        DEV_SERVER_USER,
        DEV_SERVER_USER_REQUEST,
    )
    from neorion.devservers.model.default_flavors import DEFAULT_FLAVORS

__all__ = [
    "DEFAULT_FLAVORS",
    "DEV_SERVER",
    "DEV_SERVER_FLAVOR",
    "DEV_SERVER_LOGIN_POLICY",
    "DEV_SERVER_SESSION",
    "DEV_SERVER_USER",
    "DEV_SERVER_USER_REQUEST",
    "GROUP",
    "NAME_MAX",
    "VERSION",
    "Activity",
    "Alert",
    "AppliedFlavor",
    "Backend",
    "Condition",
    "ConditionType",
    "Cost",
    "Deadline",
    "Deprecated",
    "DevServerFlavorSpec",
    "DevServerFlavorStatus",
    "DevServerSpec",
    "DevServerStatus",
    "Distributed",
    "FlavorLimits",
    "HomeVolume",
    "Lifecycle",
    "Mode",
    "OnExpire",
    "Phase",
    "Port",
    "Price",
    "QueueRef",
    "QueueStatus",
    "Rank",
    "RankHomes",
    "Resources",
    "Schedule",
    "Ssh",
    "StopReason",
    "Toleration",
    "VolumeMount",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "alert": ("Alert",),
        "crds": (
            "DEV_SERVER",
            "DEV_SERVER_FLAVOR",
            "DEV_SERVER_LOGIN_POLICY",
            "DEV_SERVER_SESSION",
            "DEV_SERVER_USER",
            "DEV_SERVER_USER_REQUEST",
        ),
        "default_flavors": ("DEFAULT_FLAVORS",),
    },
)
