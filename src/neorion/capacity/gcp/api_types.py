"""What Compute Engine tells, as far as it is used."""

from datetime import datetime
from typing import Final

from msgspec import Struct, field

from neorion.capacity.provider import Intent, IntentId, Machine, MachineId, MachineState
from neorion.keel.base import Instant

OWNER_LABEL: Final = "neorion-owner"
INTENT_LABEL: Final = "neorion-intent"
_STATES: Final = {
    "PROVISIONING": MachineState.PENDING,
    "STAGING": MachineState.PENDING,
    "STOPPING": MachineState.STOPPING,
    "DEPROVISIONING": MachineState.STOPPING,
}


class ApiModel(Struct, frozen=True, rename="camel"):
    """A piece of an answer."""


class GoogleError(ApiModel, frozen=True):
    """Why not, in Google's words."""

    code: str = ""
    message: str = ""


class GoogleErrors(ApiModel, frozen=True):
    """All that went wrong; the first says most."""

    errors: tuple[GoogleError, ...] = ()


class Operation(ApiModel, frozen=True):
    """Work that Google has begun. Whether it was possible is known when it is done."""

    name: str
    status: str = ""
    error: GoogleErrors = GoogleErrors()
    http_error_status_code: int = 0
    http_error_message: str = ""

    @property
    def done(self) -> bool:
        return self.status == "DONE"


class AccessConfig(ApiModel, frozen=True):
    """How a link is reached from elsewhere."""

    address: str = field(name="natIP", default="")


class NetworkInterface(ApiModel, frozen=True):
    """One network of a machine."""

    address: str = field(name="networkIP", default="")
    access_configs: tuple[AccessConfig, ...] = ()


class Scheduling(ApiModel, frozen=True):
    """How it was sold."""

    provisioning_model: str = ""


class ResourceStatus(ApiModel, frozen=True):
    """Where it runs, for machines whose place is told."""

    physical_host: str = ""


class GcpInstance(ApiModel, frozen=True):
    """A machine."""

    name: str
    zone: str = ""
    status: str = ""
    machine_type: str = ""
    labels: dict[str, str] = {}
    network_interfaces: tuple[NetworkInterface, ...] = ()
    scheduling: Scheduling = Scheduling()
    resource_status: ResourceStatus = ResourceStatus()
    creation_timestamp: str = ""

    def as_machine(self) -> Machine:
        """The id carries the zone: names are unique only there. A machine that was stopped by hand is still paid for."""
        zone = tail(self.zone)
        link = self.network_interfaces[0] if self.network_interfaces else NetworkInterface()
        outside = [one.address for one in link.access_configs if one.address]
        return Machine(
            id=MachineId(f"{zone}/{self.name}"),
            intent=IntentId(self.labels.get(INTENT_LABEL, "")),
            owner=self.labels.get(OWNER_LABEL, ""),
            state=_STATES.get(self.status, MachineState.RUNNING),
            instance_type=tail(self.machine_type),
            region=_region(zone),
            zone=zone,
            name=self.name,
            address=outside[0] if outside else "",
            private_address=link.address,
            host=self.resource_status.physical_host,
            spot=self.scheduling.provisioning_model == "SPOT",
            created=_instant(self.creation_timestamp),
        )


class GcpRegion(ApiModel, frozen=True):
    """A region and the URLs of its zones."""

    zones: tuple[str, ...] = ()


class ZoneInstances(ApiModel, frozen=True):
    """A zone's share of a page."""

    instances: tuple[GcpInstance, ...] = ()
    warning: GoogleError = GoogleError()


def gone(intent: Intent, zone: str) -> Machine:
    """The machine of an intent that Google has made and does not have any more."""
    return Machine(
        id=MachineId(f"{zone}/{intent.id}"),
        intent=intent.id,
        owner=intent.owner,
        state=MachineState.GONE,
        instance_type=intent.instance_type,
        region=_region(zone),
        zone=zone,
        name=intent.id,
    )


def tail(url: str) -> str:
    """Google names things by URLs; their last part is the name."""
    return url.rpartition("/")[2]


def _region(zone: str) -> str:
    return zone.rpartition("-")[0]


def _instant(text: str) -> Instant | None:
    return Instant(int(datetime.fromisoformat(text).timestamp()) * 10**9) if text else None
