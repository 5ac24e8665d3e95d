"""The two custom resources as the cluster knows them."""

from neorion.devservers.model.flavor import DevServerFlavorSpec, DevServerFlavorStatus
from neorion.devservers.model.spec import DevServerSpec
from neorion.devservers.model.status import DevServerStatus
from neorion.keel.kube.schema import Column, CustomResource

GROUP = "devservers.io"
VERSION = "v1"

DEV_SERVER = CustomResource(
    group=GROUP,
    version=VERSION,
    kind="DevServer",
    plural="devservers",
    spec=DevServerSpec,
    status=DevServerStatus,
    short_names=("dsv",),
    columns=(
        Column("Flavor", ".spec.flavor"),
        Column("Phase", ".status.phase"),
        Column("Ready", ".status.ready", "boolean"),
        Column("Stops", ".status.deadline.time", "date"),
        Column("Message", ".status.message", priority=1),
        Column("Image", ".spec.image", priority=1),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
)

DEV_SERVER_FLAVOR = CustomResource(
    group=GROUP,
    version=VERSION,
    kind="DevServerFlavor",
    plural="devserverflavors",
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
