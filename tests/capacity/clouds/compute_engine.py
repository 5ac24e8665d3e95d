"""Compute Engine's REST API on loopback, written from its public description."""

import json
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google.auth.credentials import CredentialsWithRegionalAccessBoundary

from neorion.capacity.gcp import GcpProvider, GcpSettings
from neorion.capacity.provider import Intent, IntentId
from neorion.keel.clock import Clock, SystemClock, SystemIds
from tests.capacity.clouds.gate import Answer, Call, Gate, opened
from tests.capacity.clouds.hands import HandClock

PROJECT = "my-gcp-project"
REGION = "us-central1"
ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")
_ROOT = f"/compute/v1/projects/{PROJECT}"
_URL = f"https://www.googleapis.com{_ROOT}"
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9_-]{0,63}")


def error(status: int, reason: str, message: str, domain: str = "global") -> Answer:
    one = {"message": message, "domain": domain, "reason": reason}
    return Answer(
        status, json.dumps({"error": {"code": status, "message": message, "errors": [one]}}).encode()
    )


LOCKED_OUT = error(
    401, "authError", "Request had invalid authentication credentials. Expected OAuth 2 access token."
)
STOCKOUT = (
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    f"The zone 'projects/{PROJECT}/zones/us-central1-a' does not have enough resources available.",
)
QUOTA = ("QUOTA_EXCEEDED", "Quota 'NVIDIA_H100_GPUS' exceeded.  Limit: 0.0 in region us-central1.")


@cache
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def service_account(folder: Path) -> dict[str, str]:
    """The environment in which the client finds a key, as Google gives it out."""
    path = folder / "key.json"
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "project_id": PROJECT,
                "private_key_id": "0123",
                "private_key": private_key(),
                "client_email": f"navarch@{PROJECT}.iam.gserviceaccount.com",
                "client_id": "1",
                "token_uri": "http://127.0.0.1:9/token",
            }
        )
    )
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(path), "NO_GCE_CHECK": "true"}


def is_insert(call: Call) -> bool:
    return call.method == "POST" and call.path.endswith("/instances")


class ComputeEngine:
    """One project. `fate` is what becomes of inserts in a zone; an operation is done after `looks` looks at it."""

    def __init__(self) -> None:
        self.instances: dict[tuple[str, str], dict[str, Any]] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.fate: dict[str, tuple[str, str]] = {}
        self.unreachable: set[str] = set()
        self.looks = 1
        self.page = 500
        self.inserts = 0
        self._requests: dict[str, str] = {}

    async def __call__(self, call: Call) -> Answer:
        assert call.headers["Authorization"].startswith("Bearer ")
        parts = call.path.removeprefix(_ROOT).split("/")[1:]
        match call.method, parts:
            case _, ["regions", name]:
                return self._region(name)
            case _, ["aggregated", "instances"]:
                return self._listed(call)
            case _, ["zones", _, "operations", name]:
                return self._operation(name)
            case _, ["zones", zone, "instances"]:
                return self._insert(zone, call)
            case verb, [_, zone, _, name, *_]:
                return self._instance(verb, zone, name)
            case _:
                raise AssertionError(call.path)

    def _region(self, name: str) -> Answer:
        if name != REGION:
            return error(404, "notFound", f"The resource 'projects/{PROJECT}/regions/{name}' was not found")
        return _json({"name": name, "zones": [f"{_URL}/zones/{zone}" for zone in reversed(ZONES)]})

    def _insert(self, zone: str, call: Call) -> Answer:
        body, request = json.loads(call.body), call.query.get("requestId", "")
        if request in self._requests:
            return self._operation(self._requests[request], look=False)
        if not _NAME.fullmatch(body["name"]) or any(
            not _LABEL.fullmatch(word) for pair in body["labels"].items() for word in pair
        ):
            return error(400, "invalid", f"Invalid value for field 'resource.name': '{body['name']}'.")
        if (zone, body["name"]) in self.instances:
            where = f"projects/{PROJECT}/zones/{zone}/instances/{body['name']}"
            return error(409, "alreadyExists", f"The resource '{where}' already exists")
        self.inserts += 1
        if zone not in self.fate:
            self.instances[zone, body["name"]] = self._made(zone, body)
        return self._begin(zone, "insert", request, self.fate.get(zone))

    def _made(self, zone: str, body: dict[str, Any]) -> dict[str, Any]:
        link = {"name": "nic0", "networkIP": "10.128.0.2", "accessConfigs": [{"natIP": "203.0.113.7"}]}
        return {
            **body,
            "kind": "compute#instance",
            "id": str(1_000 + self.inserts),
            "status": "PROVISIONING",
            "zone": f"{_URL}/zones/{zone}",
            "machineType": f"{_URL}/{body['machineType']}",
            "networkInterfaces": [link],
            "resourceStatus": {"physicalHost": "/rack-1/host-7"},
            "creationTimestamp": str(SystemClock().now()).replace("Z", "-00:00"),
        }

    def _begin(self, zone: str, verb: str, request: str, fate: tuple[str, str] | None = None) -> Answer:
        name = f"operation-{len(self.operations):06d}"
        self.operations[name] = {
            "kind": "compute#operation",
            "id": str(len(self.operations) + 1),
            "name": name,
            "zone": f"{_URL}/zones/{zone}",
            "operationType": verb,
            "status": "RUNNING",
            "progress": 0,
            "looks": self.looks,
            "fate": fate,
        }
        if request:
            self._requests[request] = name
        return self._operation(name, look=False)

    def _operation(self, name: str, *, look: bool = True) -> Answer:
        found = self.operations[name]
        found["looks"] -= look
        if found["looks"] <= 0:
            found["status"] = "DONE"
            if found["fate"] is not None:
                code, message = found["fate"]
                found["error"] = {"errors": [{"code": code, "message": message}]}
                found |= {"httpErrorStatusCode": 503, "httpErrorMessage": "SERVICE UNAVAILABLE"}
        return _json({key: value for key, value in found.items() if key not in ("looks", "fate")})

    def _instance(self, verb: str, zone: str, name: str) -> Answer:
        if (zone, name) not in self.instances:
            where = f"projects/{PROJECT}/zones/{zone}/instances/{name}"
            return error(404, "notFound", f"The resource '{where}' was not found")
        if verb == "GET":
            return _json(self.instances[zone, name])
        if verb == "DELETE":
            del self.instances[zone, name]
        return self._begin(zone, verb, "")

    def _listed(self, call: Call) -> Answer:
        found = re.fullmatch(r'labels\.([a-z-]+)="([^"]*)"', call.query["filter"])
        assert found is not None
        fitting = [
            one for _, one in sorted(self.instances.items()) if one["labels"].get(found[1]) == found[2]
        ]
        start = int(call.query.get("pageToken", "0"))
        items: dict[str, Any] = {f"zones/{zone}": self._empty(zone) for zone in ZONES}
        for one in fitting[start : start + self.page]:
            scope = one["zone"].removeprefix(f"{_URL}/")
            items[scope] = {"instances": [*items[scope].get("instances", ()), one]}
        more = start + self.page
        token = {"nextPageToken": str(more)} if more < len(fitting) else {}
        return _json({"kind": "compute#instanceAggregatedList", "items": items, **token})

    def _empty(self, zone: str) -> dict[str, Any]:
        code = "UNREACHABLE" if zone in self.unreachable else "NO_RESULTS_ON_PAGE"
        return {"warning": {"code": code, "message": f"There are no results for scope 'zones/{zone}'."}}


def _json(body: object) -> Answer:
    return Answer(body=json.dumps(body).encode())


class GcpRig:
    def __init__(self, gate: Gate, cloud: ComputeEngine, clock: Clock) -> None:
        self.gate = gate
        self.cloud = cloud
        self.provider = GcpProvider("gcp", GcpSettings(PROJECT, endpoint=gate.url), clock)
        self.intent = Intent(SystemIds().new(IntentId), "navarch-a", "a3-highgpu-8g", REGION, ZONES[0])

    def empty(self) -> None:
        self.cloud.fate = dict.fromkeys(ZONES, STOCKOUT)

    def fill_quota(self) -> None:
        self.cloud.fate = dict.fromkeys(ZONES, QUOTA)

    def lock_out(self) -> None:
        self.gate.refuse = lambda _: LOCKED_OUT

    def lose_answers(self) -> None:
        self.gate.lose = is_insert

    def answer_again(self) -> None:
        self.gate.lose = lambda _: False


@asynccontextmanager
async def compute_engine() -> AsyncGenerator[GcpRig]:
    cloud = ComputeEngine()
    with (
        TemporaryDirectory() as folder,
        patch.dict(os.environ, service_account(Path(folder))),
        # It would ask Google itself, beside every first call, where the key may be used.
        patch.object(
            CredentialsWithRegionalAccessBoundary,
            "_is_regional_access_boundary_lookup_required",
            return_value=False,
        ),
    ):
        async with opened(cloud) as gate:
            yield GcpRig(gate, cloud, HandClock())
