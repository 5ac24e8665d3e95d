"""What is Google's own: operations that fail later, zones, its refusals, its pages."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from google.cloud import compute_v1 as compute
from google.protobuf.json_format import MessageToDict

from neorion.capacity.gcp import GcpProvider, GcpSettings, api
from neorion.capacity.gcp.request import IMAGE, instance_of, request_id
from neorion.capacity.provider import Intent, IntentId, MachineId, MachineState
from neorion.keel.base import Deadline, Denied, Duration, Error, Invalid, NoCapacity, QuotaExceeded, Retry
from neorion.keel.clock import SystemIds
from tests.capacity.clouds.compute_engine import (
    LOCKED_OUT,
    PROJECT,
    STOCKOUT,
    ZONES,
    GcpRig,
    compute_engine,
    error,
    is_insert,
    private_key,
)
from tests.capacity.clouds.gate import Answer
from tests.capacity.clouds.hands import HandClock

pytestmark = pytest.mark.anyio

INTENT = Intent(IntentId("buy-1"), "navarch-a", "a3-highgpu-8g", "us-central1", "us-central1-a")


@pytest.fixture
async def rig() -> AsyncGenerator[GcpRig]:
    async with compute_engine() as found:
        yield found


def _asked(intent: Intent, template: str = "") -> dict[str, object]:
    """As it travels."""
    made = compute.Instance(instance_of(intent, intent.zone, template))
    return MessageToDict(compute.Instance.pb(made))


def test_the_intent_is_the_name_and_a_label_that_no_other_label_replaces():
    labels = (("navarch.dev/Pool", "Training"), ("neorion-owner", "somebody"))
    asked = _asked(replace(INTENT, labels=labels))
    assert asked["name"] == "buy-1"
    assert asked["labels"] == {
        "navarch-dev-pool": "training",
        "neorion-owner": "navarch-a",
        "neorion-intent": "buy-1",
    }


def test_each_zone_has_a_request_id_of_its_own_that_repeats():
    assert request_id(INTENT, "a") == request_id(INTENT, "a") != request_id(INTENT, "b")


def test_without_a_template_a_machine_has_all_it_needs_to_boot():
    asked = json.dumps(_asked(INTENT))
    for word in (IMAGE, "global/networks/default", "TERMINATE", "machineTypes/a3-highgpu-8g"):
        assert word in asked


def test_what_a_template_brings_is_left_to_it():
    asked = _asked(INTENT, "gpu-nodes")
    assert set(asked) == {"name", "machineType", "labels"}
    with_image = replace(INTENT, image="projects/p/global/images/x", startup="#!/bin/sh", ssh_keys=("a:k",))
    assert set(_asked(with_image, "gpu-nodes")) == {"name", "machineType", "labels", "disks", "metadata"}


@pytest.mark.parametrize(
    ("changes", "section", "expected"),
    [
        (
            {"spot": True},
            "scheduling",
            {
                "provisioningModel": "SPOT",
                "instanceTerminationAction": "DELETE",
                "onHostMaintenance": "TERMINATE",
                "automaticRestart": False,
            },
        ),
        ({"reservation": "open"}, "reservationAffinity", {"consumeReservationType": "ANY_RESERVATION"}),
        (
            {"reservation": "h100s"},
            "reservationAffinity",
            {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["h100s"],
            },
        ),
    ],
)
def test_spot_and_reservations_are_asked_for(changes: dict[str, object], section: str, expected: object):
    assert _asked(replace(INTENT, **changes))[section] == expected


@pytest.mark.parametrize(
    ("code", "family"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", NoCapacity),
        ("UNSUPPORTED_OPERATION", NoCapacity),
        ("QUOTA_EXCEEDED", QuotaExceeded),
        ("RATE_LIMIT_EXCEEDED", Retry),
        ("PERMISSIONS_ERROR", Denied),
        ("INVALID_FIELD_VALUE", Invalid),
    ],
)
async def test_an_operation_that_fails_is_told_by_its_code(rig: GcpRig, code: str, family: type[Error]):
    rig.cloud.fate[ZONES[0]] = (code, "what Google says")
    with pytest.raises(Error) as refusal:
        await rig.provider.provision(rig.intent)
    assert type(refusal.value) is family
    assert "what Google says" in refusal.value.sentence


@pytest.mark.parametrize(
    ("answer", "family"),
    [
        (error(403, "quotaExceeded", "Quota 'CPUS' exceeded.", "usageLimits"), QuotaExceeded),
        (error(403, "rateLimitExceeded", "Rate Limit Exceeded", "usageLimits"), Retry),
        (error(403, "forbidden", "Required 'compute.instances.create' permission"), Denied),
        (error(403, "accessNotConfigured", "Compute Engine API has not been used in project"), Denied),
        (error(404, "notFound", "The resource 'projects/x/zones/y' was not found"), Invalid),
        (error(400, "invalid", "Invalid value for field 'resource.machineType'"), Invalid),
        (error(400, "resourceNotReady", "The resource is not ready"), Deadline),
        (error(503, "backendError", "Internal error. Please try again"), Deadline),
        (Answer(502, b"<html>502</html>", {"Content-Type": "text/html"}), Deadline),
        (Answer(200, b"no JSON"), Deadline),
    ],
)
async def test_each_refusal_gets_its_family(rig: GcpRig, answer: Answer, family: type[Error]):
    rig.gate.refuse = lambda call: answer if is_insert(call) else None
    with pytest.raises(Error) as refusal:
        await rig.provider.provision(rig.intent)
    assert type(refusal.value) is family


async def test_too_many_requests_are_told_with_the_time_to_wait(rig: GcpRig):
    said = replace(
        error(429, "tooManyRequests", "Too many requests"),
        headers={"Retry-After": "9", "Content-Type": "application/json"},
    )
    rig.gate.refuse = lambda _: said
    with pytest.raises(Retry) as refusal:
        await rig.provider.list("navarch-a")
    assert refusal.value.after == Duration.of(seconds=9)


async def test_an_operation_that_takes_too_long_is_asked_about_again_and_buys_once(rig: GcpRig):
    rig.cloud.looks = 35
    with pytest.raises(Deadline, match="is not done"):
        await rig.provider.provision(rig.intent)
    machine = await rig.provider.provision(rig.intent)
    assert machine.intent == rig.intent.id
    assert rig.cloud.inserts == 1


async def test_after_google_forgot_the_request_its_name_is_still_known(rig: GcpRig):
    first = await rig.provider.provision(rig.intent)
    rig.cloud._requests.clear()
    assert (await rig.provider.provision(rig.intent)).id == first.id
    assert rig.cloud.inserts == 1


async def test_a_name_that_somebody_else_has_is_no_machine_of_ours(rig: GcpRig):
    await rig.provider.provision(rig.intent)
    rig.cloud._requests.clear()
    rig.cloud.instances[ZONES[0], rig.intent.id]["labels"]["neorion-owner"] = "somebody"
    with pytest.raises(Invalid, match="another owner"):
        await rig.provider.provision(rig.intent)


async def test_a_machine_that_is_gone_is_not_bought_again(rig: GcpRig):
    machine = await rig.provider.provision(rig.intent)
    await rig.provider.terminate(machine.id)
    assert (await rig.provider.provision(rig.intent)).state is MachineState.GONE
    assert rig.cloud.inserts == 1


class TestWithoutAZone:
    async def test_the_zones_of_the_region_are_asked_in_turn(self, rig: GcpRig):
        rig.cloud.fate[ZONES[0]] = STOCKOUT
        machine = await rig.provider.provision(replace(rig.intent, zone=""))
        assert (machine.zone, machine.region) == (ZONES[1], "us-central1")

    async def test_a_region_is_empty_when_all_its_zones_are(self, rig: GcpRig):
        rig.empty()
        with pytest.raises(NoCapacity) as none:
            await rig.provider.provision(replace(rig.intent, zone=""))
        assert none.value.scope == "us-central1"
        assert rig.cloud.inserts == 3

    async def test_a_machine_in_a_later_zone_is_found_when_an_earlier_one_has_some_again(self, rig: GcpRig):
        anywhere = replace(rig.intent, zone="")
        rig.cloud.fate[ZONES[0]] = STOCKOUT
        first = await rig.provider.provision(anywhere)
        rig.cloud.fate.clear()
        rig.cloud._requests.clear()
        assert (await rig.provider.provision(anywhere)).id == first.id

    async def test_a_region_that_google_does_not_know_is_refused(self, rig: GcpRig):
        with pytest.raises(Invalid):
            await rig.provider.provision(replace(rig.intent, zone="", region="us-nowhere1"))

    async def test_a_machine_needs_at_least_a_region(self, rig: GcpRig):
        with pytest.raises(Invalid):
            await rig.provider.provision(replace(rig.intent, zone="", region=""))


async def test_a_list_is_read_to_its_last_page(rig: GcpRig):
    rig.cloud.page = 2
    ids = SystemIds()
    bought = {
        (await rig.provider.provision(replace(rig.intent, id=ids.new(IntentId), zone=zone))).id
        for zone in (*ZONES, *ZONES)
    }
    rig.gate.calls.clear()
    assert {one.id for one in await rig.provider.list(rig.intent.owner)} == bought
    assert len(rig.gate.calls) == 3


async def test_a_zone_that_does_not_answer_is_not_taken_for_an_empty_one(rig: GcpRig):
    await rig.provider.provision(rig.intent)
    rig.cloud.unreachable.add(ZONES[2])
    with pytest.raises(Deadline, match="us-central1-c"):
        await rig.provider.list(rig.intent.owner)


async def test_a_machine_is_told_with_its_addresses_and_its_host(rig: GcpRig):
    bought = await rig.provider.provision(replace(rig.intent, spot=True))
    machine = await rig.provider.describe(bought.id)
    assert machine.id == f"us-central1-a/{rig.intent.id}"
    assert (machine.address, machine.private_address) == ("203.0.113.7", "10.128.0.2")
    assert (machine.host, machine.spot, machine.state) == ("/rack-1/host-7", True, MachineState.PENDING)
    assert machine.created is not None


async def test_a_machine_is_rebooted(rig: GcpRig):
    machine = await rig.provider.provision(rig.intent)
    await rig.provider.reboot(machine.id)
    assert rig.gate.calls[-1].path.endswith(f"/{rig.intent.id}/reset")


async def test_a_cloud_that_never_answers_is_not_waited_for(rig: GcpRig, monkeypatch: pytest.MonkeyPatch):
    """It has made the machine all the same: asked again, it has it."""
    with monkeypatch.context() as impatient:
        impatient.setitem(api._ONCE, "timeout", 0.2)
        rig.gate.hang = is_insert
        with pytest.raises(Deadline):
            await rig.provider.provision(rig.intent)
    rig.gate.hang = lambda _: False
    assert (await rig.provider.provision(rig.intent)).intent == rig.intent.id
    assert len(await rig.provider.list(rig.intent.owner)) == 1


async def test_nobody_answers_where_nobody_listens(rig: GcpRig):
    nowhere = GcpProvider("gcp", GcpSettings(PROJECT, endpoint="http://127.0.0.1:9"), HandClock())
    with pytest.raises(Deadline):
        await nowhere.list(rig.intent.owner)


async def test_without_credentials_nothing_is_allowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/key.json")
    with pytest.raises(Denied):
        await GcpProvider("gcp", GcpSettings(PROJECT), HandClock()).list("navarch-a")


async def test_no_refusal_shows_the_key(rig: GcpRig, caplog: pytest.LogCaptureFixture):
    await rig.provider.list("navarch-a")
    token = rig.gate.calls[-1].headers["Authorization"].removeprefix("Bearer ")
    rig.gate.refuse = lambda _: LOCKED_OUT
    with pytest.raises(Denied) as denied:
        await rig.provider.describe(MachineId("us-central1-a/x"))
    told = f"{denied.value} {denied.value.hint} {caplog.text}"
    assert token not in told
    assert private_key().splitlines()[1] not in told
