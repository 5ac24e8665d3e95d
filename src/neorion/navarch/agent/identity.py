"""The names of one machine, as its agent knows them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """What the agent was told, or found out, about where it runs. `kernel_boot` is another after each reboot."""

    name: str
    machine: str = ""
    provider_id: str = ""
    host_name: str = ""
    kube_name: str = ""
    pool: str = ""
    instance_type: str = ""
    kernel_boot: str = ""
