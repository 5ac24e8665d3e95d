"""What is EC2's own: its request, its refusals, its pages."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from neorion.capacity.aws import provider as aws
from neorion.capacity.aws.request import run_request
from neorion.capacity.provider import Capability, Intent, IntentId, MachineId, MachineState
from neorion.keel.base import Deadline, Denied, Error, Invalid, NoCapacity, QuotaExceeded, Retry
from neorion.keel.clock import SystemClock, SystemIds
from tests.capacity.clouds.ec2 import KEYS, LOCKED_OUT, Ec2Rig, action, ec2, error

pytestmark = pytest.mark.anyio

INTENT = Intent(IntentId("buy-1"), "navarch-a", "p5.48xlarge", "us-west-2", "us-west-2a", image="ami-1")


@pytest.fixture
async def rig() -> AsyncGenerator[Ec2Rig]:
    async with ec2() as found:
        yield found


def test_the_intent_is_the_client_token_and_the_tag():
    request = run_request(replace(INTENT, labels=(("pool", "training"),)), "")
    assert request["ClientToken"] == "buy-1"
    assert (request["MinCount"], request["MaxCount"]) == (1, 1)
    tags = {tag["Key"]: tag["Value"] for tag in request["TagSpecifications"][0]["Tags"]}
    assert tags == {
        "Name": "buy-1",
        "neorion:owner": "navarch-a",
        "neorion:intent": "buy-1",
        "pool": "training",
    }


def test_a_label_cannot_pass_for_the_owner():
    request = run_request(replace(INTENT, labels=(("neorion:owner", "somebody-else"),)), "")
    tags = {tag["Key"]: tag["Value"] for tag in request["TagSpecifications"][0]["Tags"]}
    assert tags["neorion:owner"] == "navarch-a"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spot": True}, ("InstanceMarketOptions", "MarketType", "spot")),
        ({"reservation": "block:cr-1"}, ("InstanceMarketOptions", "MarketType", "capacity-block")),
        (
            {"reservation": "block:cr-1"},
            (
                "CapacityReservationSpecification",
                "CapacityReservationTarget",
                {"CapacityReservationId": "cr-1"},
            ),
        ),
        (
            {"reservation": "cr-1"},
            (
                "CapacityReservationSpecification",
                "CapacityReservationTarget",
                {"CapacityReservationId": "cr-1"},
            ),
        ),
        (
            {"reservation": "arn:aws:resource-groups:us-west-2:1:group/g"},
            (
                "CapacityReservationSpecification",
                "CapacityReservationTarget",
                {"CapacityReservationResourceGroupArn": "arn:aws:resource-groups:us-west-2:1:group/g"},
            ),
        ),
        (
            {"reservation": "open"},
            ("CapacityReservationSpecification", "CapacityReservationPreference", "open"),
        ),
    ],
)
def test_spot_and_reservations_are_asked_for(changes: dict[str, object], expected: tuple[str, str, object]):
    section, key, value = expected
    assert run_request(replace(INTENT, **changes), "")[section][key] == value


def test_a_launch_template_is_named_or_given_by_id():
    assert run_request(INTENT, "lt-1")["LaunchTemplate"] == {
        "LaunchTemplateId": "lt-1",
        "Version": "$Default",
    }
    assert run_request(INTENT, "gpu")["LaunchTemplate"]["LaunchTemplateName"] == "gpu"


@pytest.mark.parametrize(
    ("status", "code", "family"),
    [
        (500, "InsufficientInstanceCapacity", NoCapacity),
        (400, "Unsupported", NoCapacity),
        (400, "ReservationCapacityExceeded", NoCapacity),
        (400, "InstanceLimitExceeded", QuotaExceeded),
        (400, "MaxSpotInstanceCountExceeded", QuotaExceeded),
        (403, "UnauthorizedOperation", Denied),
        (400, "OptInRequired", Denied),
        (503, "RequestLimitExceeded", Retry),
        (503, "Unavailable", Deadline),
        (400, "IdempotentParameterMismatch", Deadline),
        (400, "InvalidAMIID.NotFound", Invalid),
        (400, "InvalidParameterCombination", Invalid),
    ],
)
async def test_each_refusal_gets_its_family(rig: Ec2Rig, status: int, code: str, family: type[Error]):
    said = error(status, code, "what Amazon says")
    rig.gate.refuse = lambda call: said if action(call) == "RunInstances" else None
    with pytest.raises(Error) as refusal:
        await rig.provider.provision(rig.intent)
    assert type(refusal.value) is family
    assert code in refusal.value.sentence


async def test_a_purchase_carries_the_token_that_makes_it_one(rig: Ec2Rig):
    await rig.provider.provision(rig.intent)
    (bought,) = [call for call in rig.gate.calls if action(call) == "RunInstances"]
    assert parse_qs(bought.body.decode())["ClientToken"] == [rig.intent.id]


async def test_a_list_is_read_to_its_last_page(rig: Ec2Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aws, "_PAGE", 5)
    ids = SystemIds()
    bought = {(await rig.provider.provision(replace(rig.intent, id=ids.new(IntentId)))).id for _ in range(6)}
    rig.gate.calls.clear()
    assert {one.id for one in await rig.provider.list(rig.intent.owner)} == bought
    assert len(rig.gate.calls) == 2


async def test_a_machine_without_an_image_is_refused_before_anything_is_sent(rig: Ec2Rig):
    with pytest.raises(Invalid):
        await rig.provider.provision(replace(rig.intent, image=""))
    assert rig.gate.calls == []


async def test_an_instance_is_known_by_its_region_and_its_own_id(rig: Ec2Rig):
    machine = await rig.provider.provision(rig.intent)
    assert machine.id == f"us-west-2/{machine.name}"
    assert machine.zone == "us-west-2a"
    assert machine.private_address
    await rig.provider.terminate(machine.id)
    assert (await rig.provider.describe(machine.id)).state is MachineState.GONE


async def test_a_machine_is_rebooted(rig: Ec2Rig):
    machine = await rig.provider.provision(rig.intent)
    assert Capability.REBOOT in rig.provider.capabilities
    await rig.provider.reboot(machine.id)
    assert action(rig.gate.calls[-1]) == "RebootInstances"


async def test_spot_prices_are_told_by_zone_and_say_nothing_of_stock(rig: Ec2Rig):
    told = await rig.provider.offerings(["p5.48xlarge"])
    assert {one.zone for one in told} >= {"us-west-2a", "us-west-2b"}
    assert {(one.region, one.spot, one.available) for one in told} == {("us-west-2", True, None)}
    assert all(one.price > 0 for one in told)


async def test_a_cloud_that_never_answers_is_not_waited_for(rig: Ec2Rig, monkeypatch: pytest.MonkeyPatch):
    """It has made the machine all the same: asked again, it has it."""
    with monkeypatch.context() as impatient:
        impatient.setattr(aws, "_READ_S", 0.2)
        rig.gate.hang = lambda call: action(call) == "RunInstances"
        with pytest.raises(Deadline):
            await rig.provider.provision(rig.intent)
    # The impatient client.
    rig.provider._clients.clear()
    rig.gate.hang = lambda _: False
    assert (await rig.provider.provision(rig.intent)).intent == rig.intent.id
    assert len(await rig.provider.list(rig.intent.owner)) == 1


async def test_nobody_answers_where_nobody_listens():
    settings = aws.AwsSettings(("us-west-2",), endpoint="http://127.0.0.1:9")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        with pytest.raises(Deadline):
            await aws.AwsProvider("aws", settings, SystemClock()).list("navarch-a")


async def test_no_refusal_shows_the_key(rig: Ec2Rig, caplog: pytest.LogCaptureFixture):
    rig.gate.refuse = lambda _: LOCKED_OUT
    with pytest.raises(Denied) as denied:
        await rig.provider.describe(MachineId("us-west-2/i-1"))
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in f"{denied.value} {denied.value.hint} {caplog.text}"
