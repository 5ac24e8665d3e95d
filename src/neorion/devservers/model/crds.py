"""The six custom resources as the cluster knows them."""

from neorion.devservers.model.field_types import DISTRIBUTED_NAME_MAX, NAME_MAX
from neorion.devservers.model.flavor import DevServerFlavorSpec, DevServerFlavorStatus
from neorion.devservers.model.kube_types import (
    DEVSERVERFLAVORS,
    DEVSERVERS,
    LOGIN_POLICIES,
    SESSIONS,
    USER_REQUESTS,
    USERS,
)
from neorion.devservers.model.login import (
    POLICY_NAME,
    DevServerLoginPolicySpec,
    DevServerLoginPolicyStatus,
    DevServerUserRequestSpec,
    DevServerUserRequestStatus,
)
from neorion.devservers.model.session import DevServerSessionSpec, DevServerSessionStatus
from neorion.devservers.model.spec import DevServerSpec
from neorion.devservers.model.status import DevServerStatus
from neorion.devservers.model.user import USER_NAME_MAX, DevServerUserSpec, DevServerUserStatus
from neorion.keel.kube.schema import CustomResource, PrinterColumn

DEV_SERVER = CustomResource(
    group=DEVSERVERS.group,
    version=DEVSERVERS.version,
    kind=DEVSERVERS.name,
    plural=DEVSERVERS.plural,
    spec=DevServerSpec,
    status=DevServerStatus,
    short_names=("dsv",),
    columns=(
        PrinterColumn("Flavor", ".spec.flavor"),
        PrinterColumn("Phase", ".status.phase"),
        PrinterColumn("Ready", ".status.ready", "boolean"),
        # As text: of a date, kubectl tells the age, and what is still to come has none.
        PrinterColumn("Stops", ".status.deadline.time"),
        PrinterColumn("Message", ".status.message", priority=1),
        PrinterColumn("Image", ".spec.image", priority=1),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
    born=(
        (
            f"self.metadata.name.size() <= {NAME_MAX} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            f"a server's name has small letters, digits and hyphens, {NAME_MAX} at most: its Service is named after it",
        ),
        (
            f"self.spec.mode != 'distributed' || self.metadata.name.size() <= {DISTRIBUTED_NAME_MAX}",
            f"the name of a distributed server has {DISTRIBUTED_NAME_MAX} letters at most: its StatefulSet is named after it",
        ),
    ),
)

DEV_SERVER_FLAVOR = CustomResource(
    group=DEVSERVERFLAVORS.group,
    version=DEVSERVERFLAVORS.version,
    kind=DEVSERVERFLAVORS.name,
    plural=DEVSERVERFLAVORS.plural,
    spec=DevServerFlavorSpec,
    status=DevServerFlavorStatus,
    namespaced=False,
    short_names=("dsf",),
    columns=(
        PrinterColumn("CPU", ".spec.resources.requests.cpu"),
        PrinterColumn("Memory", ".spec.resources.requests.memory"),
        PrinterColumn("GPU", r".spec.resources.limits.nvidia\.com/gpu"),
        PrinterColumn("Per-Hour", ".spec.price.perHour"),
        PrinterColumn("Default", ".spec.default", "boolean"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
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
        PrinterColumn("Namespace", ".status.namespace"),
        PrinterColumn("Phase", ".status.phase"),
        PrinterColumn("Suspended", ".spec.suspended", "boolean"),
        PrinterColumn("Groups", ".spec.groups", priority=1),
        PrinterColumn("Message", ".status.message", priority=1),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
    born=(
        (
            f"self.metadata.name.size() <= {USER_NAME_MAX} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            f"a user's name has small letters, digits and hyphens, {USER_NAME_MAX} at most: the namespace is named after it",
        ),
    ),
)

DEV_SERVER_SESSION = CustomResource(
    group=SESSIONS.group,
    version=SESSIONS.version,
    kind=SESSIONS.name,
    plural=SESSIONS.plural,
    spec=DevServerSessionSpec,
    status=DevServerSessionStatus,
    short_names=("dss",),
    columns=(
        PrinterColumn("User", ".spec.user"),
        PrinterColumn("Server", ".spec.server"),
        PrinterColumn("Source", ".spec.source"),
        PrinterColumn("Replica", ".spec.replica", priority=1),
        PrinterColumn("Client", ".spec.client", priority=1),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
)

DEV_SERVER_LOGIN_POLICY = CustomResource(
    group=LOGIN_POLICIES.group,
    version=LOGIN_POLICIES.version,
    kind=LOGIN_POLICIES.name,
    plural=LOGIN_POLICIES.plural,
    spec=DevServerLoginPolicySpec,
    status=DevServerLoginPolicyStatus,
    namespaced=False,
    short_names=("dslp",),
    columns=(
        PrinterColumn("Issuer", ".spec.identityProvider.issuer"),
        PrinterColumn("Certificates", ".spec.firstLogin.certificates", "boolean"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
    born=(
        (
            f"self.metadata.name == '{POLICY_NAME}'",
            f"there is one login policy, and its name is {POLICY_NAME}",
        ),
        (
            "!self.spec.firstLogin.identityProvider || has(self.spec.identityProvider)",
            "firstLogin.identityProvider needs an identityProvider",
        ),
    ),
)

DEV_SERVER_USER_REQUEST = CustomResource(
    group=USER_REQUESTS.group,
    version=USER_REQUESTS.version,
    kind=USER_REQUESTS.name,
    plural=USER_REQUESTS.plural,
    spec=DevServerUserRequestSpec,
    status=DevServerUserRequestStatus,
    short_names=("dsur",),
    columns=(
        PrinterColumn("User", ".spec.user"),
        PrinterColumn("Phase", ".status.phase"),
        PrinterColumn("Message", ".status.message"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
    born=(
        (
            "(self.spec.?certificate.orValue('') != '') != (self.spec.?idToken.orValue('') != '')",
            "give a certificate or a token as evidence, and not both",
        ),
    ),
)
