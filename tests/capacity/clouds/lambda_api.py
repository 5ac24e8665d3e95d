"""Lambda's API on loopback, written from its public description (version 1.10)."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from neorion.capacity.lambda_cloud import LambdaProvider, LambdaSettings
from neorion.capacity.provider import Intent, IntentId
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, SystemClock, SystemIds
from neorion.keel.config import SecretValue
from tests.capacity.clouds.gate import Answer, Call, Gate, opened

KEY = "secret_navarch_0123456789abcdef"
TYPE = "gpu_8x_h100_sxm5"
REGION = "us-west-2"
_NOW = Duration(0)
_LAUNCH_KEYS = {
    "region_name", "instance_type_name", "ssh_key_names", "file_system_names", "file_system_mounts",
    "hostname", "name", "image", "user_data", "tags", "firewall_rulesets",
}  # fmt: skip
_TAG_KEY = re.compile(r"^[a-z][a-z0-9-:]+$")


def data(value: object) -> Answer:
    return Answer(body=json.dumps({"data": value}).encode())


def error(status: int, code: str, message: str, suggestion: str = "") -> Answer:
    said = {"code": code, "message": message, "suggestion": suggestion}
    return Answer(status, json.dumps({"error": said}).encode())


NO_CAPACITY = error(
    400,
    "instance-operations/launch/insufficient-capacity",
    "Not enough capacity to fulfill launch request.",
    "Choose an instance type with more availability, or try again later.",
)
QUOTA = error(400, "global/quota-exceeded", "Quota exceeded.", "Contact Support to increase your quota.")
LOCKED_OUT = error(401, "global/invalid-api-key", "API key was invalid, expired, or deleted.")
MISSING = error(404, "global/object-does-not-exist", "Specified instance does not exist.")


def is_launch(call: Call) -> bool:
    return call.path.endswith("/instance-operations/launch")


class LambdaDouble:
    """One account. Machines that are `hidden` exist and are not listed yet."""

    def __init__(self) -> None:
        self.instances: dict[str, dict[str, Any]] = {}
        self.ssh_keys = ["ops"]
        self.hidden = False
        self.launches = 0

    async def __call__(self, call: Call) -> Answer:
        if call.headers.get("Authorization") != f"Bearer {KEY}":
            return LOCKED_OUT
        path = call.path.removeprefix("/api/v1")
        if call.method == "GET":
            return self._show(path)
        body, verb = json.loads(call.body), path.removeprefix("/instance-operations/")
        return self._launch(body) if verb == "launch" else self._operate(verb, body["instance_ids"])

    def _show(self, path: str) -> Answer:
        match path.split("/")[1:]:
            case ["instances"]:
                return data([] if self.hidden else list(self.instances.values()))
            case ["instances", name] if name in self.instances:
                return data(self.instances[name])
            case ["ssh-keys"]:
                return data([{"id": f"key-{name}", "name": name, "public_key": ""} for name in self.ssh_keys])
            case ["instance-types"]:
                return data(self._wares())
            case _:
                return MISSING

    def _launch(self, body: dict[str, Any]) -> Answer:
        wrong = sorted(set(body) - _LAUNCH_KEYS) or [
            tag["key"] for tag in body["tags"] if not _TAG_KEY.match(tag["key"])
        ]
        if wrong or len(body["ssh_key_names"]) != 1:
            return error(400, "global/invalid-parameters", f"Invalid request data: {wrong}.")
        if body["ssh_key_names"][0] not in self.ssh_keys:
            return error(404, "global/object-does-not-exist", "Specified SSH key does not exist.")
        self.launches += 1
        name = f"{self.launches:032x}"
        self.instances[name] = {
            "id": name,
            "name": body["name"],
            "hostname": body["hostname"],
            "status": "booting",
            "ssh_key_names": body["ssh_key_names"],
            "file_system_names": [],
            "region": {"name": body["region_name"], "description": "Arizona, USA"},
            "instance_type": {"name": body["instance_type_name"], "price_cents_per_hour": 2392, "specs": {}},
            "tags": body["tags"],
            "is_reserved": False,
            "actions": {},
        }
        return data({"instance_ids": [name]})

    def _operate(self, verb: str, names: list[str]) -> Answer:
        if any(self.instances.get(name, {}).get("status", "terminated") == "terminated" for name in names):
            return error(400, "global/invalid-parameters", "Instance is in a state that forbids this.")
        chosen = [self.instances[name] for name in names]
        if verb == "restart":
            return data({"restarted_instances": chosen})
        for one in chosen:
            one["status"] = "terminated"
        return data({"terminated_instances": chosen})

    def _wares(self) -> dict[str, Any]:
        kind = {"name": TYPE, "description": "8x H100 (80 GB SXM5)", "price_cents_per_hour": 2392}
        return {
            TYPE: {"instance_type": kind, "regions_with_capacity_available": [{"name": "us-south-1"}]},
            "gpu_1x_a10": {
                "instance_type": {**kind, "name": "gpu_1x_a10", "price_cents_per_hour": 75},
                "regions_with_capacity_available": [],
            },
        }


class LambdaRig:
    def __init__(self, gate: Gate, cloud: LambdaDouble, provider: LambdaProvider) -> None:
        self.gate = gate
        self.cloud = cloud
        self.provider = provider
        self.intent = Intent(SystemIds().new(IntentId), "navarch-a", TYPE, REGION, ssh_keys=("ops",))

    def empty(self) -> None:
        self.gate.refuse = lambda call: NO_CAPACITY if is_launch(call) else None

    def fill_quota(self) -> None:
        self.gate.refuse = lambda call: QUOTA if is_launch(call) else None

    def lock_out(self) -> None:
        self.gate.refuse = lambda _: LOCKED_OUT

    def lose_answers(self) -> None:
        self.gate.lose = is_launch

    def answer_again(self) -> None:
        self.gate.lose = lambda _: False


def settings(gate: Gate) -> LambdaSettings:
    """Without pauses."""
    return LambdaSettings(SecretValue(KEY), (REGION,), f"{gate.url}/api/v1", every=_NOW, launch_every=_NOW)


@asynccontextmanager
async def lambda_api(clock: Clock | None = None, **changes: Duration) -> AsyncGenerator[LambdaRig]:
    cloud = LambdaDouble()
    async with opened(cloud) as gate:
        chosen = replace(settings(gate), **changes)
        provider = LambdaProvider("lambda", chosen, clock or SystemClock())
        try:
            yield LambdaRig(gate, cloud, provider)
        finally:
            await provider.close()
