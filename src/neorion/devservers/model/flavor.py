"""The `spec` of a DevServerFlavor: a kind of server that an administrator offers."""

from typing import Annotated, ClassVar, Final

from msgspec import Meta, field

from neorion.devservers.model.field_types import Amount, DottedName, Name, Size, Span, Text
from neorion.keel.kube import KubeStruct
from neorion.keel.kube.validation import Rule

# Few, because the server weighs a rule by the most it could have to read.
Amounts = Annotated[dict[str, Amount], Meta(max_length=6)]

# What the server cannot read as an amount, it cannot apply either, and says so in a way that is no refusal.
_READABLE = """
(!has(self.requests) || self.requests.all(name, isQuantity(string(self.requests[name]))))
  && (!has(self.limits) || self.limits.all(name, isQuantity(string(self.limits[name]))))
""".strip()
_WITHIN_LIMITS = """
!has(self.limits) || !has(self.requests) || self.requests.all(name, !(name in self.limits)
  || quantity(string(self.requests[name])).compareTo(quantity(string(self.limits[name]))) <= 0)
""".strip()
_WHOLE_DEVICES = """
!has(self.requests) || self.requests.all(name, !name.contains('/')
  || (has(self.limits) && name in self.limits && string(self.limits[name]) == string(self.requests[name])))
""".strip()

_DISTINCT_IMAGES = """
!has(self.warm) || self.warm.all(one, self.warm.exists_one(other, has(one.image) == has(other.image)
  && (!has(one.image) || one.image == other.image)))
""".strip()


# As the vendors' device plugins name them: whole ones (gpu), their slices (mig-1g.10gb), and those that are shared.
# guards/devices.yaml has the same.
GPUS: Final = ("nvidia.com/gpu", "nvidia.com/mig-", "amd.com/", "gpu.intel.com/", "habana.ai/")


def is_gpu(resource: str) -> bool:
    """Reports whether the resource counts GPUs or slices of GPUs."""
    return resource.startswith(GPUS)


def gpu_count(flavor: "DevServerFlavorSpec") -> int:
    """Whole GPUs of a machine of this flavor; slices of one GPU cannot work together."""
    return sum(
        int(str(amount))
        for name, amount in flavor.resources.limits.items()
        if is_gpu(name) and "mig-" not in name and str(amount).isdecimal()
    )


class Resources(KubeStruct, frozen=True, kw_only=True):
    """Requests and limits of a server."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        (_READABLE, "write amounts as Kubernetes does, such as 500m of cpu and 32Gi of memory"),
        (_WITHIN_LIMITS, "a request cannot be larger than its limit"),
        (_WHOLE_DEVICES, "devices such as nvidia.com/gpu need the same number in requests and limits"),
    )

    requests: Amounts = field(default_factory=dict[str, Amount])
    limits: Amounts = field(default_factory=dict[str, Amount])


class Toleration(KubeStruct, frozen=True, kw_only=True):
    """A taint the server may live with."""

    key: Annotated[str, Meta(max_length=316)] | None = None
    operator: Annotated[str, Meta(pattern=r"^(Exists|Equal)$")] = "Equal"
    value: Annotated[str, Meta(max_length=63)] | None = None
    effect: Annotated[str, Meta(pattern=r"^(NoSchedule|PreferNoSchedule|NoExecute)$")] | None = None


class Price(KubeStruct, frozen=True, kw_only=True):
    """Price of an hour, as decimal strings: `perHour` while it runs, `stopped` while only its volumes are kept."""

    per_hour: Annotated[str, Meta(max_length=16, pattern=r"^[0-9]+(\.[0-9]+)?$")] = "0"
    stopped: Annotated[str, Meta(max_length=16, pattern=r"^[0-9]+(\.[0-9]+)?$")] = "0"
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$")] = "USD"


class FlavorLimits(
    KubeStruct,
    frozen=True,
    kw_only=True,
    rename={"max_ttl": "maxTTL", "max_idle": "maxIdle", "max_per_user": "maxPerUser"},
):
    """The most that one user may take of it."""

    max_ttl: Span | None = None
    max_idle: Span | None = None
    max_per_user: Annotated[int, Meta(ge=0, le=10_000)] | None = None


class Topology(KubeStruct, frozen=True, kw_only=True):
    """A label of nodes, such as that of a zone or a rack, which has one value for all ranks of a distributed server."""

    key: Annotated[str, Meta(min_length=1, max_length=316, pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]*$")]
    required: bool = False


class WarmPods(KubeStruct, frozen=True, kw_only=True):
    """Machines kept ready for servers of one image: bought, and with the image pulled. Without `image` it is the flavor's."""

    size: Annotated[int, Meta(ge=0, le=100)]
    image: Annotated[str, Meta(min_length=1, max_length=512, pattern=r"^[^\s]+$")] | None = None


class Deprecated(KubeStruct, frozen=True, kw_only=True):
    """Why it goes, and what to take instead."""

    message: Text
    redirect: DottedName | None = None


class DevServerFlavorSpec(KubeStruct, frozen=True, kw_only=True):
    """A kind of machine one can ask for."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        (
            _DISTINCT_IMAGES,
            "warm lists each image once, and at most one entry without an image",
        ),
    )

    resources: Resources
    node_selector: Annotated[dict[str, Annotated[str, Meta(max_length=63)]], Meta(max_length=32)] = field(
        default_factory=dict[str, str]
    )
    tolerations: Annotated[tuple[Toleration, ...], Meta(max_length=32)] = ()
    default: bool = False
    image: Annotated[str, Meta(min_length=1, max_length=512, pattern=r"^[^\s]+$")] | None = None
    shm: Size | None = None
    topology: Topology | None = None
    price: Price | None = None
    limits: FlavorLimits | None = None
    queue: Name | None = None
    warm: Annotated[tuple[WarmPods, ...], Meta(max_length=4)] = ()
    deprecated: Deprecated | None = None
    description: Text | None = None


class DevServerFlavorStatus(KubeStruct, frozen=True, kw_only=True):
    """Nothing is observed of a flavor: what there is of it, its nodes and quotas say."""
