"""The provider port over EC2."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast

import anyio.to_thread
import boto3  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types
from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types

from neorion.capacity.aws.errors import to_provider_error
from neorion.capacity.aws.request import INTENT_TAG, OWNER_TAG, machine_of, run_request
from neorion.capacity.provider import Capability, Intent, Machine, MachineId, Offering, no_machine, refused
from neorion.keel.clock import Clock

T = TypeVar("T")

# RunInstances answers within seconds; a slower call is repeated with the same token.
_CONNECT_S: Final = 5
_READ_S: Final = 30
# The most that one page may hold.
_PAGE: Final = 1_000
_NOT_GONE: Final = ["pending", "running", "shutting-down", "stopping", "stopped"]


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """The account and regions to buy in. Credentials are found as the vendor's client finds them.

    `regions` are those that are listed. `template` is a launch template, for networks, disks and roles; `endpoint` is the
    address of EC2, if not the usual one.
    """

    regions: tuple[str, ...]
    profile: str = ""
    template: str = ""
    endpoint: str = ""


class _Ec2(Protocol):
    """The used part of the vendor's client, which is created at run time and has no types."""

    def run_instances(self, **request: object) -> Mapping[str, Any]: ...

    def terminate_instances(self, **request: object) -> Mapping[str, Any]: ...

    def reboot_instances(self, **request: object) -> Mapping[str, Any]: ...

    def describe_instances(self, **request: object) -> Mapping[str, Any]: ...

    def get_paginator(self, verb: str) -> Any: ...  # noqa: ANN401 -- as above


class AwsProvider:
    """EC2 in all its regions under one account."""

    capabilities = frozenset(
        {Capability.OFFERINGS, Capability.REBOOT, Capability.RESERVATION, Capability.SPOT}
    )

    def __init__(self, name: str, settings: AwsSettings, clock: Clock) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._clients: dict[str, _Ec2] = {}
        # Clients are made in threads, and making one is not safe in two at once.
        self._making = threading.Lock()

    async def provision(self, intent: Intent) -> Machine:
        """Lists before it buys, because EC2 forgets a token in time, while the list still has the machine."""
        if not intent.image and not self._settings.template:
            raise refused(self.name, "a machine needs an image, from its pool or a launch template")
        if len(intent.ssh_keys) > 1:
            raise refused(self.name, "a machine of EC2 takes one key pair")
        scope = f"{intent.region}/{intent.zone}" if intent.zone else intent.region
        return await self._call(intent.region, scope, lambda ec2: self._buy(ec2, intent))

    async def list(self, owner: str) -> Sequence[Machine]:
        """Lists all regions. If one fails, the call fails, because a missing machine would count as gone."""
        filters = _filters(**{f"tag:{OWNER_TAG}": [owner], "instance-state-name": _NOT_GONE})
        found: list[Machine] = []
        for region in self._settings.regions:
            found += await self._call(region, region, lambda ec2, region=region: _find(ec2, region, filters))
        return found

    async def describe(self, machine: MachineId) -> Machine:
        region, instance = self._split(machine)
        found = await self._call(
            region, machine, lambda ec2: _machines(region, [ec2.describe_instances(InstanceIds=[instance])])
        )
        if not found:
            raise no_machine(self.name, machine)
        return found[0]

    async def terminate(self, machine: MachineId) -> None:
        region, instance = self._split(machine)
        await self._call(region, machine, lambda ec2: ec2.terminate_instances(InstanceIds=[instance]))

    async def reboot(self, machine: MachineId) -> None:
        region, instance = self._split(machine)
        await self._call(region, machine, lambda ec2: ec2.reboot_instances(InstanceIds=[instance]))

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        """Current spot prices in each zone. EC2 has no API for other prices or for its stock."""
        now, kinds = str(self._clock.now()), list(instance_types)
        found: list[Offering] = []
        for region in self._settings.regions:
            found += await self._call(
                region, region, lambda ec2, region=region: _spot(ec2, region, kinds, now)
            )
        return found

    def _buy(self, ec2: _Ec2, intent: Intent) -> Machine:
        known = _find(
            ec2,
            intent.region,
            _filters(**{f"tag:{OWNER_TAG}": [intent.owner], f"tag:{INTENT_TAG}": [intent.id]}),
        )
        if known:
            return known[0]
        answer = ec2.run_instances(**run_request(intent, self._settings.template))
        return machine_of(intent.region, answer["Instances"][0])

    async def _call(self, region: str, scope: str, work: Callable[[_Ec2], T]) -> T:
        try:
            return await anyio.to_thread.run_sync(lambda: work(self._client(region)), abandon_on_cancel=True)
        except (ClientError, BotoCoreError) as error:
            raise to_provider_error(self.name, scope, error) from None

    def _client(self, region: str) -> _Ec2:
        with self._making:
            if region not in self._clients:
                session = boto3.Session(profile_name=self._settings.profile or None, region_name=region)
                client = cast(
                    "_Ec2",
                    session.client(  # pyright: ignore[reportUnknownMemberType] -- as above
                        "ec2",
                        endpoint_url=self._settings.endpoint or None,
                        # No retries here: the caller decides on them.
                        config=Config(
                            connect_timeout=_CONNECT_S,
                            read_timeout=_READ_S,
                            retries={"total_max_attempts": 1},
                        ),
                    ),
                )
                self._clients[region] = client
            return self._clients[region]

    def _split(self, machine: MachineId) -> tuple[str, str]:
        region, _, instance = machine.partition("/")
        if not region or not instance:
            raise no_machine(self.name, machine)
        return region, instance


def _filters(**wanted: Iterable[str]) -> list[dict[str, object]]:
    return [{"Name": name, "Values": list(values)} for name, values in wanted.items()]


def _find(ec2: _Ec2, region: str, filters: list[dict[str, object]]) -> list[Machine]:
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=filters, PaginationConfig={"PageSize": _PAGE}
    )
    return _machines(region, pages)


def _spot(ec2: _Ec2, region: str, kinds: Sequence[str], now: str) -> list[Offering]:
    """Spot prices from a history that begins now, which holds the current price of each type and zone."""
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=kinds, ProductDescriptions=["Linux/UNIX"], StartTime=now
    )
    return [
        Offering(
            one["InstanceType"],
            region,
            float(one["SpotPrice"]),
            zone=one["AvailabilityZone"],
            spot=True,
            available=None,
        )
        for page in pages
        for one in page["SpotPriceHistory"]
    ]


def _machines(region: str, pages: Iterable[Mapping[str, Any]]) -> list[Machine]:
    return [
        machine_of(region, instance)
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]
