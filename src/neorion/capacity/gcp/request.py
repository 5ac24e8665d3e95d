"""Converts an intent to the instance to insert."""

import re
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from neorion.capacity.gcp.api_types import INTENT_LABEL, OWNER_LABEL
from neorion.capacity.provider import Intent

# For pools without an image: it contains the driver, and the family follows its newest version.
IMAGE: Final = (
    "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accelerator-2404-amd64-with-nvidia-580"
)

_OPEN: Final = "open"
_NAMED: Final = "compute.googleapis.com/reservation-name"
_LABEL_MAX: Final = 63


def request_id(intent: Intent, zone: str) -> str:
    """The id by which Google recognises a repeated request for a while; later the name does."""
    return str(uuid5(NAMESPACE_URL, f"neorion:{intent.id}:{zone}"))


def instance_of(intent: Intent, zone: str, template: str) -> dict[str, Any]:
    """One instance, in the field names of the vendor's client. Fields that the pool leaves open come from the template."""
    request: dict[str, Any] = {
        "name": str(intent.id),
        "machine_type": f"zones/{zone}/machineTypes/{intent.instance_type}",
        "labels": _labels(intent),
    }
    if intent.image or not template:
        request["disks"] = [_disk(intent, zone)]
    if not template:
        nat = {"name": "External NAT", "type_": "ONE_TO_ONE_NAT"}
        request["network_interfaces"] = [{"network": "global/networks/default", "access_configs": [nat]}]
    if intent.spot or not template:
        request["scheduling"] = _scheduling(intent)
    if intent.reservation:
        request["reservation_affinity"] = _reservation(intent)
    items = {"ssh-keys": "\n".join(intent.ssh_keys), "startup-script": intent.startup}
    if any(items.values()):
        request["metadata"] = {
            "items": [{"key": key, "value": value} for key, value in items.items() if value]
        }
    return request


def _labels(intent: Intent) -> dict[str, str]:
    words = {_word(key): _word(value) for key, value in intent.labels}
    return {**words, OWNER_LABEL: str(intent.owner), INTENT_LABEL: str(intent.id)}


def _word(text: str) -> str:
    """Converts a text to a valid label; it is never converted back."""
    return re.sub(r"[^a-z0-9_-]", "-", text.lower())[:_LABEL_MAX]


def _disk(intent: Intent, zone: str) -> dict[str, Any]:
    made = {"source_image": intent.image or IMAGE, "disk_type": f"zones/{zone}/diskTypes/pd-balanced"}
    return {"boot": True, "auto_delete": True, "initialize_params": made}


def _scheduling(intent: Intent) -> dict[str, Any]:
    # Machines with GPUs cannot be migrated while they run.
    common: dict[str, Any] = {"on_host_maintenance": "TERMINATE"}
    if not intent.spot:
        return {**common, "automatic_restart": True}
    spot = {"provisioning_model": "SPOT", "instance_termination_action": "DELETE"}
    return {**common, **spot, "automatic_restart": False}


def _reservation(intent: Intent) -> dict[str, Any]:
    """The reservation: any for "open", otherwise the named one ("projects/…/reservations/…" for another project)."""
    if intent.reservation == _OPEN:
        return {"consume_reservation_type": "ANY_RESERVATION"}
    return {
        "consume_reservation_type": "SPECIFIC_RESERVATION",
        "key": _NAMED,
        "values": [intent.reservation],
    }
