"""Converts an intent to RunInstances, and EC2's instances to machines."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from neorion.capacity.provider import Intent, IntentId, Machine, MachineId, MachineState
from neorion.keel.base import Instant

OWNER_TAG = "neorion:owner"
INTENT_TAG = "neorion:intent"

_STATES = {
    "pending": MachineState.PENDING,
    "running": MachineState.RUNNING,
    "shutting-down": MachineState.STOPPING,
    "terminated": MachineState.GONE,
    # Stopped by a person: it can be started again and its disk is paid for, so it is neither stopping nor gone.
    "stopping": MachineState.RUNNING,
    "stopped": MachineState.RUNNING,
}
# Values of a pool's `reservation` that are not the name of one.
_OPEN = "open"
_BLOCK = "block:"


def run_request(intent: Intent, template: str) -> dict[str, Any]:
    """The request for one instance. The intent is the client token, so a repeated request returns the first machine."""
    tags = [{"Key": key, "Value": value} for key, value in _tags(intent).items()]
    request: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": str(intent.id),
        "InstanceType": intent.instance_type,
        # A machine that shuts itself down is not left behind, stopped and paid for.
        "InstanceInitiatedShutdownBehavior": "terminate",
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")],
    }
    if template:
        key = "LaunchTemplateId" if template.startswith("lt-") else "LaunchTemplateName"
        request["LaunchTemplate"] = {key: template, "Version": "$Default"}
    if intent.image:
        request["ImageId"] = intent.image
    if intent.zone:
        request["Placement"] = {"AvailabilityZone": intent.zone}
    if intent.ssh_keys:
        request["KeyName"] = intent.ssh_keys[0]
    if intent.startup:
        request["UserData"] = intent.startup
    return request | _market(intent)


def _tags(intent: Intent) -> dict[str, str]:
    return {**dict(intent.labels), "Name": intent.id, OWNER_TAG: intent.owner, INTENT_TAG: intent.id}


def _market(intent: Intent) -> dict[str, Any]:
    """The market options: spot, a reservation ("cr-…", a group's ARN, "open"), or a capacity block ("block:cr-…")."""
    found: dict[str, Any] = {}
    if intent.spot:
        found["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        }
    reservation = intent.reservation
    if reservation.startswith(_BLOCK):
        found["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
        reservation = reservation.removeprefix(_BLOCK)
    if reservation == _OPEN:
        found["CapacityReservationSpecification"] = {"CapacityReservationPreference": _OPEN}
    elif reservation:
        group = reservation.startswith("arn:")
        key = "CapacityReservationResourceGroupArn" if group else "CapacityReservationId"
        found["CapacityReservationSpecification"] = {"CapacityReservationTarget": {key: reservation}}
    return found


def machine_of(region: str, instance: Mapping[str, Any]) -> Machine:
    """Converts an instance. The id contains the region, because an instance id is valid only there."""
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
    launched = instance.get("LaunchTime")
    return Machine(
        id=MachineId(f"{region}/{instance['InstanceId']}"),
        intent=IntentId(tags.get(INTENT_TAG, "")),
        owner=tags.get(OWNER_TAG, ""),
        state=_STATES.get(instance["State"]["Name"], MachineState.PENDING),
        instance_type=instance["InstanceType"],
        region=region,
        zone=instance.get("Placement", {}).get("AvailabilityZone", ""),
        name=instance["InstanceId"],
        address=instance.get("PublicIpAddress", ""),
        private_address=instance.get("PrivateIpAddress", ""),
        host=instance.get("Placement", {}).get("HostId", ""),
        spot=instance.get("InstanceLifecycle") == "spot",
        created=Instant(int(launched.timestamp()) * 10**9) if isinstance(launched, datetime) else None,
    )
