"""The desired properties of a real node."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from neorion.keel.base import Invalid, Quantity, UnitError, did_you_mean

# The kubelet's own default.
PODS_DEFAULT: Final = 110
# The addresses in a node's pod network, less the bridge's own and the broadcast.
PODS_MAX: Final = 250
GPUS_MAX: Final = 64
# A kubelet reserves this itself, so that it notices in time when memory runs out.
MEMORY_SPARE: Final = Quantity.parse("100Mi")


class TaintEffect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(msgspec.Struct, frozen=True):
    """A taint: keeps pods off a node."""

    key: str
    effect: TaintEffect
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> "Taint":
        """Parses Kubernetes' form: "nvidia.com/gpu=present:NoSchedule"; the value may be missing."""
        pair, _, effect = text.rpartition(":")
        key, _, value = pair.partition("=")
        if not key or effect not in list(TaintEffect):
            raise Invalid(
                "node.bad_taint",
                f'"{text[:100]}" is not a valid taint.',
                hint=f'Write "key=value:NoSchedule". {did_you_mean(effect, list(TaintEffect))}'.strip(),
            )
        return cls(key, TaintEffect(effect), value)


class NodeSpec(msgspec.Struct, frozen=True):
    """A real node. It has the machine's processors and memory, or less if limited here."""

    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    cpus: str = ""
    memory: str = ""
    pods: int = PODS_DEFAULT
    gpus: int = 0


PLAIN: Final = NodeSpec()


@dataclass(frozen=True, slots=True)
class HostCapacity:
    """The processors and memory of this machine."""

    cpus: Quantity
    memory: Quantity

    @classmethod
    def this(cls) -> "HostCapacity":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(Quantity.of(os.cpu_count() or 1), Quantity.of(memory))


def reserved(spec: NodeSpec, machine: HostCapacity) -> dict[str, str]:
    """The resources that the kubelet must reserve so that the node offers the requested ones. Validates the request."""
    if not 1 <= spec.pods <= PODS_MAX or not 0 <= spec.gpus <= GPUS_MAX:
        raise Invalid(
            "node.bad_size",
            f"A node holds 1 to {PODS_MAX} pods and 0 to {GPUS_MAX} GPUs.",
            hint="Larger nodes can be simulated: neorion drydock up --simulated.",
        )
    kept = dict[str, str]()
    if spec.cpus:
        kept["cpu"] = str(_rest("cpu", spec.cpus, machine.cpus))
    if spec.memory:
        rest = _rest("memory", spec.memory, machine.memory)
        kept["memory"] = str(rest - MEMORY_SPARE if rest > MEMORY_SPARE else Quantity.of(0))
    return kept


def _rest(name: str, text: str, whole: Quantity) -> Quantity:
    try:
        requested = Quantity.parse(text)
    except UnitError as error:
        raise Invalid("node.bad_quantity", f"{name}: {error}.", hint='Write "1", "500m" or "4Gi".') from error
    if not requested or requested > whole:
        raise Invalid(
            "node.too_large",
            f"A real node cannot offer {text} of {name}: this machine has {whole}.",
            hint="Ask for less, or simulate the node: neorion drydock up --simulated.",
        )
    return whole - requested
