"""Messages of Compute Engine, with the fields that are used."""

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
    """The base of all messages."""


class GoogleError(ApiModel, frozen=True):
    """An error of Google."""

    code: str = ""
    message: str = ""


class GoogleErrors(ApiModel, frozen=True):
    """The errors of an operation; the first is the most specific."""

    errors: tuple[GoogleError, ...] = ()


class Operation(ApiModel, frozen=True):
    """An operation of Google. Its outcome is known when it is done."""

    name: str
    status: str = ""
    error: GoogleErrors = GoogleErrors()
    http_error_status_code: int = 0
    http_error_message: str = ""

    @property
    def done(self) -> bool:
        return self.status == "DONE"


class AccessConfig(ApiModel, frozen=True):
    """The external access of a network interface."""

    address: str = field(name="natIP", default="")


class NetworkInterface(ApiModel, frozen=True):
    """One network of a machine."""

    address: str = field(name="networkIP", default="")
    access_configs: tuple[AccessConfig, ...] = ()


class Scheduling(ApiModel, frozen=True):
    """The provisioning model of an instance."""

    provisioning_model: str = ""


class ResourceStatus(ApiModel, frozen=True):
    """The physical host of an instance, if Google reports it."""

    physical_host: str = ""


class GcpInstance(ApiModel, frozen=True):
    """An instance."""

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
        """Converts an instance. The id contains the zone, because names are unique only there.

        A stopped machine is still paid for.
        """
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
    """The instances of one zone in a page."""

    instances: tuple[GcpInstance, ...] = ()
    warning: GoogleError = GoogleError()


def gone(intent: Intent, zone: str) -> Machine:
    """The machine of an intent that Google has created and no longer has."""
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
    """The last part of a URL, which is the name of the resource."""
    return url.rpartition("/")[2]


def _region(zone: str) -> str:
    return zone.rpartition("-")[0]


def _instant(text: str) -> Instant | None:
    return Instant(int(datetime.fromisoformat(text).timestamp()) * 10**9) if text else None
