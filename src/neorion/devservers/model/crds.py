"""The three custom resources as the cluster knows them."""

from neorion.devservers.model.field_types import NAME_MAX
from neorion.devservers.model.flavor import DevServerFlavorSpec, DevServerFlavorStatus
from neorion.devservers.model.kube_types import FLAVORS, SERVERS, USERS
from neorion.devservers.model.spec import DevServerSpec
from neorion.devservers.model.status import DevServerStatus
from neorion.devservers.model.user import USER_NAME_MAX, DevServerUserSpec, DevServerUserStatus
from neorion.keel.kube.schema import Column, CustomResource

DEV_SERVER = CustomResource(
    group=SERVERS.group,
    version=SERVERS.version,
    kind=SERVERS.name,
    plural=SERVERS.plural,
    spec=DevServerSpec,
    status=DevServerStatus,
    short_names=("dsv",),
    columns=(
        Column("Flavor", ".spec.flavor"),
        Column("Phase", ".status.phase"),
        Column("Ready", ".status.ready", "boolean"),
        # As text: of a date, kubectl tells the age, and what is still to come has none.
        Column("Stops", ".status.deadline.time"),
        Column("Message", ".status.message", priority=1),
        Column("Image", ".spec.image", priority=1),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    born=(
        (
            f"self.metadata.name.size() <= {NAME_MAX} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            f"a server's name has small letters, digits and hyphens, {NAME_MAX} at most: its Service is named after it",
        ),
    ),
)

DEV_SERVER_FLAVOR = CustomResource(
    group=FLAVORS.group,
    version=FLAVORS.version,
    kind=FLAVORS.name,
    plural=FLAVORS.plural,
    spec=DevServerFlavorSpec,
    status=DevServerFlavorStatus,
    namespaced=False,
    short_names=("dsf",),
    columns=(
        Column("CPU", ".spec.resources.requests.cpu"),
        Column("Memory", ".spec.resources.requests.memory"),
        Column("GPU", r".spec.resources.limits.nvidia\.com/gpu"),
        Column("Per-Hour", ".spec.price.perHour"),
        Column("Default", ".spec.default", "boolean"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
)

DEV_SERVER_USER = CustomResource(
    group=USERS.group,
    version=USERS.version,
    kind=USERS.name,
    plural=USERS.plural,
    spec=DevServerUserSpec,
    status=DevServerUserStatus,
    namespaced=False,
    short_names=("dsu",),
    columns=(
        Column("Namespace", ".status.namespace"),
        Column("Phase", ".status.phase"),
        Column("Suspended", ".spec.suspended", "boolean"),
        Column("Groups", ".spec.groups", priority=1),
        Column("Message", ".status.message", priority=1),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    born=(
        (
            f"self.metadata.name.size() <= {USER_NAME_MAX} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            f"a user's name has small letters, digits and hyphens, {USER_NAME_MAX} at most: the namespace is named after it",
        ),
    ),
)
