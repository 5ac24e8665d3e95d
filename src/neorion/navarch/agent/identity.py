"""The names of one machine, as its agent knows them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """Names of the agent's machine, configured or detected. `kernel_boot` changes with each reboot."""

    name: str
    machine: str = ""
    provider_id: str = ""
    host_name: str = ""
    kube_name: str = ""
    pool: str = ""
    instance_type: str = ""
    kernel_boot: str = ""
