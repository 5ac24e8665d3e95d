"""Messages of Lambda's API, with the fields that are used."""

import re
from typing import Any, Final

from msgspec import Struct

from neorion.capacity.provider import Intent, IntentId, Machine, MachineId, MachineState
from neorion.keel.clock import born

OWNER_TAG: Final = "neorion:owner"
INTENT_TAG: Final = "neorion:intent"

_NO_TAG_KEY: Final = re.compile(r"[^a-z0-9:-]")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STATES: Final = {
    "booting": MachineState.PENDING,
    "active": MachineState.RUNNING,
    "unhealthy": MachineState.RUNNING,
    "terminating": MachineState.STOPPING,
    "terminated": MachineState.GONE,
    "preempted": MachineState.GONE,
}


class Tag(Struct, frozen=True):
    """A tag of an instance."""

    key: str
    value: str


class LambdaRegion(Struct, frozen=True):
    """The region of an instance."""

    name: str = ""


class InstanceType(Struct, frozen=True):
    """An instance type and its price."""

    name: str = ""
    price_cents_per_hour: int = 0


class LambdaInstance(Struct, frozen=True):
    """An instance. Its addresses are missing until it has booted."""

    id: str
    status: str = ""
    name: str | None = None
    ip: str | None = None
    private_ip: str | None = None
    region: LambdaRegion = LambdaRegion()
    instance_type: InstanceType = InstanceType()
    tags: tuple[Tag, ...] | None = None

    def as_machine(self) -> Machine:
        tags = {tag.key: tag.value for tag in self.tags or ()}
        intent = IntentId(tags.get(INTENT_TAG, ""))
        return Machine(
            id=MachineId(self.id),
            intent=intent,
            owner=tags.get(OWNER_TAG, ""),
            state=_STATES.get(self.status, MachineState.PENDING),
            instance_type=self.instance_type.name,
            region=self.region.name,
            name=self.name or "",
            address=self.ip or "",
            private_address=self.private_ip or "",
            # Lambda does not report it; the machine is no older than the decision to buy it.
            created=born(intent),
        )


class InstancesResponse(Struct, frozen=True):
    """`GET /instances`: all of them, Lambda has no pages."""

    data: tuple[LambdaInstance, ...]


class InstanceResponse(Struct, frozen=True):
    """`GET /instances/ID`."""

    data: LambdaInstance


class LaunchedIds(Struct, frozen=True):
    """The ids of launched instances."""

    instance_ids: tuple[str, ...]


class LaunchResponse(Struct, frozen=True):
    """The answer to a launch."""

    data: LaunchedIds


class InstanceTypeOffer(Struct, frozen=True):
    """An instance type, and the regions that have one now."""

    instance_type: InstanceType
    regions_with_capacity_available: tuple[LambdaRegion, ...] = ()


class InstanceTypesResponse(Struct, frozen=True):
    """`GET /instance-types`."""

    data: dict[str, InstanceTypeOffer]


class SshKey(Struct, frozen=True):
    """An SSH key of the account."""

    name: str


class SshKeys(Struct, frozen=True):
    """`GET /ssh-keys`."""

    data: tuple[SshKey, ...]


class LambdaError(Struct, frozen=True):
    """An error of Lambda."""

    code: str = ""
    message: str = ""


class ErrorResponse(Struct, frozen=True):
    """The body of every error response."""

    error: LambdaError = LambdaError()


def launch_request(intent: Intent, ssh_key: str) -> dict[str, Any]:
    """The body of a launch. Labels are converted to valid tags; they are never converted back."""
    words = {_NO_TAG_KEY.sub("-", key.lower()): value for key, value in intent.labels if key[:1].isalpha()}
    tags = {**words, OWNER_TAG: intent.owner, INTENT_TAG: intent.id}
    request: dict[str, Any] = {
        "region_name": intent.region,
        "instance_type_name": intent.instance_type,
        "ssh_key_names": [ssh_key],
        "name": intent.id,
        "hostname": intent.id,
        "tags": [{"key": key, "value": value} for key, value in tags.items()],
    }
    if intent.image:
        request["image"] = {"id" if _UUID.fullmatch(intent.image) else "family": intent.image}
    if intent.startup:
        request["user_data"] = intent.startup
    return request


def launched(intent: Intent, instance: str) -> Machine:
    """A machine that was just launched, as a list will return it."""
    tags = (Tag(OWNER_TAG, intent.owner), Tag(INTENT_TAG, intent.id))
    return LambdaInstance(
        instance,
        "booting",
        name=intent.id,
        region=LambdaRegion(intent.region),
        instance_type=InstanceType(intent.instance_type),
        tags=tags,
    ).as_machine()
