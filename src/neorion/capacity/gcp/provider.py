"""The provider port over Compute Engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from neorion.capacity.gcp.api import GcpApi
from neorion.capacity.gcp.api_types import INTENT_LABEL, OWNER_LABEL, Operation, gone
from neorion.capacity.gcp.errors import failed
from neorion.capacity.gcp.request import instance_of, request_id
from neorion.capacity.provider import (
    Capability,
    Intent,
    Machine,
    MachineId,
    Offering,
    no_capacity,
    no_machine,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Duration, NoCapacity
from neorion.keel.clock import Clock

# The outcome is mostly known within a minute; after that the same request is repeated.
_PATIENCE: Final = Duration.of(seconds=60)
_POLL_EVERY: Final = Duration.of(seconds=2)


@dataclass(frozen=True, slots=True)
class GcpSettings:
    """The project to buy in. Credentials are found as the vendor's client finds them.

    `template` is an instance template, for networks, disks and service accounts; `endpoint` is the API's address,
    if not the usual one.
    """

    project: str
    template: str = ""
    endpoint: str = ""


class GcpProvider:
    """Compute Engine in one project."""

    capabilities = frozenset({Capability.REBOOT, Capability.SPOT, Capability.RESERVATION})

    def __init__(self, name: str, settings: GcpSettings, clock: Clock) -> None:
        self.name = name
        self._template = settings.template
        self._api = GcpApi(name, settings.project, settings.endpoint)
        self._clock = clock
        self._zones: dict[str, Sequence[str]] = {}

    async def provision(self, intent: Intent) -> Machine:
        """Buys the machine. Without a zone, tries the zones of the region in turn."""
        if intent.zone:
            return await self._buy(intent, intent.zone)
        if not intent.region:
            raise refused(self.name, "a machine needs a zone or a region")
        # Names are unique only in a zone, so an earlier call may have bought it in another one.
        for one in await self._api.labelled(INTENT_LABEL, intent.id):
            return one.as_machine()
        for zone in await self._zones_of(intent.region):
            try:
                return await self._buy(intent, zone)
            except NoCapacity:
                continue
        raise no_capacity(self.name, intent.region, "none of its zones has one")

    async def list(self, owner: str) -> Sequence[Machine]:
        return [one.as_machine() for one in await self._api.labelled(OWNER_LABEL, owner)]

    async def describe(self, machine: MachineId) -> Machine:
        found = await self._api.instance(*self._split(machine))
        if found is None:
            raise no_machine(self.name, machine)
        return found.as_machine()

    async def terminate(self, machine: MachineId) -> None:
        if not await self._api.delete(*self._split(machine)):
            raise no_machine(self.name, machine)

    async def reboot(self, machine: MachineId) -> None:
        if not await self._api.reset(*self._split(machine)):
            raise no_machine(self.name, machine)

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        del instance_types
        return []

    async def _buy(self, intent: Intent, zone: str) -> Machine:
        """Inserts the instance.

        For a repeated request Google returns the first operation, or reports that the name exists.
        """
        instance = instance_of(intent, zone, self._template)
        operation = await self._api.insert(zone, instance, request_id(intent, zone), self._template)
        if operation is not None:
            await self._until_done(zone, operation)
        found = await self._api.instance(zone, intent.id)
        if found is None:
            return gone(intent, zone)
        machine = found.as_machine()
        if (machine.intent, machine.owner) != (intent.id, intent.owner):
            raise refused(self.name, f"the name {intent.id} is taken in {zone} by a machine of another owner")
        return machine

    async def _until_done(self, zone: str, operation: Operation) -> None:
        waited = Duration(0)
        while not operation.done:
            if waited >= _PATIENCE:
                raise unknown_outcome(self.name, f"{operation.name} in {zone} is not done after {waited}")
            await self._clock.sleep(_POLL_EVERY)
            waited += _POLL_EVERY
            operation = await self._api.operation(zone, operation.name)
        error = failed(self.name, zone, operation)
        if error is not None:
            raise error

    async def _zones_of(self, region: str) -> Sequence[str]:
        if region not in self._zones:
            self._zones[region] = await self._api.zones(region)
        return self._zones[region]

    def _split(self, machine: MachineId) -> tuple[str, str]:
        zone, _, name = machine.partition("/")
        if not zone or not name:
            raise no_machine(self.name, machine)
        return zone, name
