"""Health events, policy results and ailments of nodes."""

from enum import StrEnum

from msgspec import Struct

from neorion.capacity.gpu import Remedy, XidClass, xid
from neorion.keel.base import Instant


class Health(StrEnum):
    """Health of a node. It is UNKNOWN before the first heartbeat and after a long silence."""

    UNKNOWN = "unknown"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


class EventKind(StrEnum):
    """Kind of an agent's event. SILENCE comes from the control plane."""

    XID = "xid"
    ECC_DOUBLE_BIT = "ecc_dbe"
    ECC_SINGLE_BIT = "ecc_sbe"
    ROW_REMAP = "row_remap"
    THERMAL = "thermal"
    POWER = "power"
    NVLINK = "nvlink"
    PCIE = "pcie"
    GPU_MISSING = "gpu_missing"
    INFINIBAND = "infiniband"
    RECOVERY_ACTION = "recovery_action"
    DRIVER = "driver"
    SELF_TEST = "self_test"
    PREEMPTION = "preemption"
    SILENCE = "silence"


class HealthEvent(Struct, frozen=True, omit_defaults=True):
    """One thing that an agent saw. `gpu` is -1 where it is about the whole machine."""

    at: Instant
    kind: EventKind
    gpu: int = -1
    gpu_uuid: str = ""
    xid: int = 0
    message: str = ""
    metrics: dict[str, float] = {}

    @property
    def signature(self) -> str:
        """Events of one signature may have one cause: "xid 79", "thermal"."""
        return f"xid {self.xid}" if self.kind is EventKind.XID else self.kind.value

    def like(self, other: "HealthEvent") -> bool:
        """Reports whether both events have the same signature."""
        return self.kind is other.kind and (self.xid == other.xid or self.kind is not EventKind.XID)

    @property
    def description(self) -> str:
        """The signature with its meaning: "XID 79 (GPU has fallen off the bus)"."""
        if self.kind is EventKind.XID:
            return f"XID {self.xid} ({xid(self.xid).name})"
        return self.kind.value.replace("_", " ")


class PolicyResult(Struct, frozen=True, omit_defaults=True):
    """Result of a policy for one event: the first rule that matched, and its reason."""

    rule: str
    result: Health
    remedy: Remedy = Remedy.NOTHING
    # One such event is enough; the pool's threshold is not waited for.
    certain: bool = False
    sentence: str = ""


class Ailment(Struct, frozen=True, omit_defaults=True):
    """A current problem of a node. `bursts` counts groups of sightings with quiet time between them."""

    signature: str
    sentence: str
    remedy: Remedy
    result: Health
    first: Instant
    last: Instant
    rule: str = ""
    bursts: int = 1
    certain: bool = False
    gpu: int = -1

    @property
    def is_the_workloads(self) -> bool:
        """An application's error, by NVIDIA's catalogue."""
        code = self.signature.removeprefix("xid ")
        return code.isdecimal() and xid(int(code)).kind is XidClass.APPLICATION
