"""The provider port over Lambda's cloud."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from neorion.capacity.lambda_cloud.api import TIMEOUT, ApiEndpoint, CallScope, LambdaApi
from neorion.capacity.lambda_cloud.api_types import (
    InstanceResponse,
    InstancesResponse,
    InstanceTypesResponse,
    LaunchResponse,
    SshKeys,
    launch_request,
    launched,
)
from neorion.capacity.provider import (
    Capability,
    Intent,
    IntentId,
    Machine,
    MachineId,
    MachineState,
    Offering,
    no_machine,
    rate_limited,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Deadline, Duration, Error
from neorion.keel.clock import Clock, born
from neorion.keel.config import SecretValue

URL: Final = "https://cloud.lambda.ai/api/v1"
# A launch that was sent may take effect until the API has dropped it; only then does a missing machine mean no launch.
SETTLED: Final = TIMEOUT * 4
# Ids are part of a path.
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class LambdaSettings:
    """The account and its rate limits: one request per second and one launch in twelve seconds.

    `regions` are the regions with prices.
    """

    key: SecretValue
    regions: tuple[str, ...] = ()
    url: str = URL
    every: Duration = field(default=Duration.of(seconds=1))
    launch_every: Duration = field(default=Duration.of(seconds=12))


class LambdaProvider:
    """Lambda's cloud under one account."""

    capabilities = frozenset({Capability.REBOOT, Capability.OFFERINGS})

    def __init__(self, name: str, settings: LambdaSettings, clock: Clock) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._api = LambdaApi(
            name, ApiEndpoint(settings.url.rstrip("/"), settings.key, settings.every), clock
        )
        # One launch at a time: two for one intent could not be distinguished until both machines exist.
        self._launching = anyio.Lock()
        self._next_launch = 0.0
        self._started_ms, self._started_at = clock.now().ns // _MS, clock.monotonic()
        # Launches without a response, and their times.
        self._lost: dict[IntentId, float] = {}

    async def provision(self, intent: Intent) -> Machine:
        """Lists before it launches, and launches only if no earlier launch can still take effect."""
        if intent.spot or intent.reservation or intent.zone:
            raise refused(self.name, "Lambda has no spot machines, reservations or zones")
        if not intent.region:
            raise refused(self.name, "a machine needs a region")
        async with self._launching:
            self._keep_pace()
            for machine in await self.list(intent.owner):
                if machine.intent == intent.id:
                    return machine
            if self._may_be_in_flight(intent.id):
                raise unknown_outcome(self.name, "an earlier launch may still take effect")
            return await self._launch(intent)

    async def list(self, owner: str) -> Sequence[Machine]:
        found = await self._api.get("/instances", InstancesResponse)
        machines = [instance.as_machine() for instance in found.data]
        return [one for one in machines if one.owner == owner and one.state is not MachineState.GONE]

    async def describe(self, machine: MachineId) -> Machine:
        path = f"/instances/{self._checked(machine)}"
        return (await self._api.get(path, InstanceResponse, CallScope(machine=machine))).data.as_machine()

    async def terminate(self, machine: MachineId) -> None:
        """Describes first, because Lambda rejects the termination of an ended machine as a wrong request."""
        if (await self.describe(machine)).state in (MachineState.STOPPING, MachineState.GONE):
            return
        await self._operate("terminate", machine)

    async def reboot(self, machine: MachineId) -> None:
        await self._operate("restart", machine)

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        wares = (await self._api.get("/instance-types", InstanceTypesResponse)).data
        found: list[Offering] = []
        for kind in instance_types:
            ware = wares.get(kind)
            if ware is None:
                continue
            now = {region.name for region in ware.regions_with_capacity_available}
            price = ware.instance_type.price_cents_per_hour / 100
            found += [
                Offering(kind, region, price, available=region in now)
                for region in sorted(now.union(self._settings.regions))
            ]
        return found

    async def close(self) -> None:
        await self._api.close()

    def _keep_pace(self) -> None:
        """Raises before anything is sent if a launch is too early, so that waiting uses up no requests of the account."""
        now = self._clock.monotonic()
        if now < self._next_launch:
            wait = Duration.of(seconds=self._next_launch - now)
            raise rate_limited(self.name, wait, f"one launch in {self._settings.launch_every}")

    async def _launch(self, intent: Intent) -> Machine:
        request = launch_request(intent, await self._ssh_key(intent))
        self._next_launch = self._clock.monotonic() + self._settings.launch_every.seconds
        self._note_lost(intent.id)
        try:
            made = await self._api.post(
                "/instance-operations/launch", request, LaunchResponse, CallScope(intent.region)
            )
        except Error as error:
            if not isinstance(error, Deadline):
                # An error response means that nothing was launched.
                del self._lost[intent.id]
            raise
        del self._lost[intent.id]
        if len(made.data.instance_ids) != 1:
            raise unknown_outcome(self.name, f"{len(made.data.instance_ids)} machines for one launch")
        return launched(intent, made.data.instance_ids[0])

    def _may_be_in_flight(self, intent: IntentId) -> bool:
        """True if an earlier launch may still take effect: one of this process, or of the one before it."""
        sent = self._lost.get(intent)
        made = born(intent)
        if sent is None and (made is None or made.ns // _MS < self._started_ms):
            sent = self._started_at
        return sent is not None and self._clock.monotonic() - sent < SETTLED.seconds

    def _note_lost(self, intent: IntentId) -> None:
        now = self._clock.monotonic()
        recent = {one: at for one, at in self._lost.items() if now - at < SETTLED.seconds}
        self._lost = {**recent, intent: now}

    async def _ssh_key(self, intent: Intent) -> str:
        """Selects the one key that Lambda requires. The pool may omit it if the account has only one."""
        names = intent.ssh_keys or tuple(key.name for key in (await self._api.get("/ssh-keys", SshKeys)).data)
        if len(names) != 1:
            raise refused(self.name, f"a machine takes one of the account's SSH keys, not {len(names)}")
        return names[0]

    def _checked(self, machine: MachineId) -> str:
        if _ID.fullmatch(machine) is None:
            raise no_machine(self.name, machine)
        return machine

    async def _operate(self, verb: str, machine: MachineId) -> None:
        body: dict[str, Any] = {"instance_ids": [self._checked(machine)]}
        await self._api.post(f"/instance-operations/{verb}", body, dict, CallScope(machine=machine))
