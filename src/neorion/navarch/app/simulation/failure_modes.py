"""Faults of GPU machines: their rates and their remedies.

The rates are those that Meta published for the training of Llama 3 405B: 419 unplanned stops in 54 days on 16,384 H100s.
That of `agent` is an assumption.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.navarch.model import EventKind

# 54 days of 2,048 machines with eight GPUs each.
NODE_DAYS: Final = 54 * 16_384 / 8

_MINUTE: Final = Duration.of(minutes=1)


@dataclass(frozen=True, slots=True)
class FailureMode:
    """One kind of fault. `count` is how often the published run saw it.

    `kind` is what the agent reports of it, `repeats` how often again while it lasts; None says that it reports nothing. `cure`
    is the mildest remedy that helps, NOTHING where the machine is not at fault. A `mute` machine is not heard while it lasts, and
    one that is `gone` never again. `lasts` is how long it takes to pass by itself.
    """

    name: str
    count: float
    kind: EventKind | None = None
    xid: int = 0
    cure: Remedy = Remedy.REPLACE
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    repeats: Duration | None = None
    mute: bool = False
    gone: bool = False
    # The agent alone is at fault: the scheduler still reaches the machine.
    agent_only: bool = False
    lasts: Duration | None = None

    @property
    def per_node_day(self) -> float:
        return self.count / NODE_DAYS

    @property
    def blames_the_machine(self) -> bool:
        return self.cure is not Remedy.NOTHING


ILLS: Final = {
    ill.name: ill
    for ill in (
        FailureMode("faulty-gpu", 148, EventKind.XID, 79, repeats=_MINUTE * 30),
        FailureMode("memory", 72, EventKind.XID, 48, Remedy.RESET_GPU, repeats=_MINUTE * 30),
        FailureMode("sram", 19, EventKind.XID, 95, Remedy.RESET_GPU, repeats=_MINUTE * 30),
        FailureMode("firmware", 17, EventKind.XID, 119, Remedy.REBOOT, repeats=_MINUTE * 30),
        FailureMode("switch", 35, cure=Remedy.NOTHING, mute=True, lasts=_MINUTE * 8),
        FailureMode(
            "adapter", 7, EventKind.INFINIBAND, 0, Remedy.REBOOT, {"fatal": 1.0}, repeats=_MINUTE * 10
        ),
        FailureMode("agent", 10, cure=Remedy.NOTHING, mute=True, agent_only=True, lasts=_MINUTE * 120),
        FailureMode("hang", 2, cure=Remedy.REBOOT, mute=True),
        FailureMode("host-gone", 32, gone=True),
        FailureMode(
            "thermal", 6, EventKind.THERMAL, 0, Remedy.REPLACE, {"margin": -1.0}, repeats=_MINUTE * 10
        ),
        FailureMode("application", 54, EventKind.XID, 13, Remedy.NOTHING),
        FailureMode("collective", 7, EventKind.XID, 31, Remedy.NOTHING),
    )
}
