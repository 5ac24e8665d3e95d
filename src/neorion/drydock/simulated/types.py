"""Machine types of simulated nodes, with the properties that their clouds publish."""

from dataclasses import dataclass
from typing import Final

from neorion.keel.base import Invalid, did_you_mean


@dataclass(frozen=True, slots=True)
class MachineType:
    """The resources of one machine. `rack_nodes` machines of a type sold by the rack share one NVLink domain."""

    instance: str
    region: str
    zones: tuple[str, ...]
    cpus: int
    memory_gi: int
    gpus: int = 0
    product: str = ""
    infiniband: bool = False
    arch: str = "amd64"
    rack_nodes: int = 0

    @property
    def resources(self) -> dict[str, str]:
        found = {"cpu": str(self.cpus), "memory": f"{self.memory_gi}Gi", "pods": "110"}
        if self.gpus:
            found["nvidia.com/gpu"] = str(self.gpus)
        if self.infiniband:
            # A switch that leads to such nodes, not a count of ports.
            found["rdma/ib"] = "6300"
        return found

    def labels(self, index: int) -> dict[str, str]:
        """The labels of the machine with this number: machines are spread over the zones in turn."""
        found = {
            "kubernetes.io/arch": self.arch,
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": self.instance,
            "topology.kubernetes.io/region": self.region,
            "topology.kubernetes.io/zone": self.zones[index % len(self.zones)],
        }
        if self.gpus:
            found |= {"nvidia.com/gpu.count": str(self.gpus), "nvidia.com/gpu.product": self.product}
        return found


_COREWEAVE: Final = ("US-EAST-04", ("US-EAST-04A", "US-EAST-04B"))
_AWS: Final = ("us-east-1", ("us-east-1a", "us-east-1b", "us-east-1c"))

TYPES: Final = {
    "cpu": MachineType("cd-gp-i64-erapids", *_COREWEAVE, 64, 512),
    "a100x8": MachineType("gd-8xa100-i128", *_COREWEAVE, 128, 2048, 8, "NVIDIA-A100-SXM4-80GB"),
    "h100x8": MachineType(
        "gd-8xh100ib-i128", *_COREWEAVE, 128, 2048, 8, "NVIDIA-H100-80GB-HBM3", infiniband=True
    ),
    "h200x8": MachineType("gd-8xh200ib-i128", *_COREWEAVE, 128, 2048, 8, "NVIDIA-H200", infiniband=True),
    "l40sx8": MachineType("gd-8xl40s-i128", *_COREWEAVE, 128, 1024, 8, "NVIDIA-L40S"),
    "gb200x4": MachineType(
        "gb200-4x", *_COREWEAVE, 144, 960, 4, "NVIDIA-GB200", infiniband=True, arch="arm64", rack_nodes=18
    ),
    "m7i.4xlarge": MachineType("m7i.4xlarge", *_AWS, 16, 64),
    "g6.xlarge": MachineType("g6.xlarge", *_AWS, 4, 16, 1, "NVIDIA-L4"),
    "p4d.24xlarge": MachineType("p4d.24xlarge", *_AWS, 96, 1152, 8, "NVIDIA-A100-SXM4-40GB"),
    "p5.48xlarge": MachineType("p5.48xlarge", *_AWS, 192, 2048, 8, "NVIDIA-H100-80GB-HBM3"),
}
DEFAULT_TYPE: Final = "cpu"
# A thousand take some ten seconds; more than this would only test the load of the machine.
COUNT_MAX: Final = 5000


def machine_type(name: str) -> MachineType:
    """Returns the type by its short name or by the cloud's own."""
    by_instance = {kind.instance: kind for kind in TYPES.values()}
    found = TYPES.get(name) or by_instance.get(name)
    if found is None:
        raise Invalid(
            "drydock.machine_type",
            f'The machine type "{name}" does not exist.',
            hint=did_you_mean(name, [*TYPES, *by_instance]),
        )
    return found


@dataclass(frozen=True, slots=True)
class SimulatedNodeGroup:
    """Simulated nodes of one type, as in `100:h100x8`."""

    count: int
    type: str = DEFAULT_TYPE

    @classmethod
    def parse(cls, text: str) -> "SimulatedNodeGroup":
        count, _, kind = text.partition(":")
        if not (count.isdecimal() and 0 < int(count) <= COUNT_MAX):
            raise Invalid(
                "drydock.simulated",
                f'"{text}" is not a valid number of simulated nodes.',
                hint=f"Write COUNT or COUNT:TYPE, as in 100:h100x8; COUNT is 1 to {COUNT_MAX}.",
            )
        machine_type(kind or DEFAULT_TYPE)
        return cls(int(count), kind or DEFAULT_TYPE)
