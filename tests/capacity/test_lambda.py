"""What is Lambda's own: no token, a slow counter, and its refusals."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from neorion.capacity.lambda_cloud import LambdaProvider
from neorion.capacity.lambda_cloud.provider import SETTLED
from neorion.capacity.provider import IntentId, MachineId, MachineState, Offering
from neorion.keel.base import Deadline, Denied, Duration, Error, Invalid, NotFound, Retry
from neorion.keel.clock import SystemClock, SystemIds
from tests.capacity.clouds.gate import Answer
from tests.capacity.clouds.hands import HandClock
from tests.capacity.clouds.lambda_api import (
    KEY,
    LOCKED_OUT,
    TYPE,
    LambdaRig,
    error,
    is_launch,
    lambda_api,
    settings,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rig() -> AsyncGenerator[LambdaRig]:
    async with lambda_api() as found:
        yield found


async def test_a_launch_carries_the_intent_as_name_and_tag(rig: LambdaRig):
    labels = (("navarch.dev/pool", "training"), ("1", "no key"))
    image = "lambda-stack-22-04"
    await rig.provider.provision(replace(rig.intent, labels=labels, image=image, startup="#cloud-config"))
    (launch,) = [json.loads(call.body) for call in rig.gate.calls if is_launch(call)]
    assert launch["name"] == launch["hostname"] == rig.intent.id
    assert {tag["key"]: tag["value"] for tag in launch["tags"]} == {
        "navarch-dev-pool": "training",
        "neorion:owner": "navarch-a",
        "neorion:intent": rig.intent.id,
    }
    assert launch["image"] == {"family": image}
    assert launch["user_data"] == "#cloud-config"


async def test_a_label_cannot_pass_for_the_owner(rig: LambdaRig):
    machine = await rig.provider.provision(replace(rig.intent, labels=(("neorion:owner", "somebody"),)))
    assert (await rig.provider.describe(machine.id)).owner == "navarch-a"


async def test_the_only_key_of_the_account_is_taken_and_two_are_refused(rig: LambdaRig):
    await rig.provider.provision(replace(rig.intent, ssh_keys=()))
    rig.cloud.ssh_keys.append("another")
    with pytest.raises(Invalid, match="not 2"):
        await rig.provider.provision(replace(rig.intent, id=SystemIds().new(IntentId), ssh_keys=()))
    assert rig.cloud.launches == 1


@pytest.mark.parametrize("changes", [{"spot": True}, {"reservation": "r"}, {"zone": "a"}, {"region": ""}])
async def test_what_lambda_does_not_sell_is_refused_before_anything_is_sent(
    rig: LambdaRig, changes: dict[str, object]
):
    with pytest.raises(Invalid):
        await rig.provider.provision(replace(rig.intent, **changes))
    assert rig.gate.calls == []


@pytest.mark.parametrize(
    ("answer", "family"),
    [
        (error(403, "global/account-inactive", "Your account is inactive."), Denied),
        (error(400, "global/invalid-address", "You must have a billing address."), Denied),
        (error(400, "global/invalid-parameters", "Invalid request data."), Invalid),
        (error(404, "global/object-does-not-exist", "Specified SSH key does not exist."), Invalid),
        (error(500, "global/internal-error", "An unexpected error occurred."), Deadline),
        (Answer(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"}), Deadline),
        (Answer(200, b'{"data": {}}'), Deadline),
        (Answer(200, b'{"data": {"instance_ids": []}}'), Deadline),
    ],
)
async def test_each_refusal_gets_its_family(rig: LambdaRig, answer: Answer, family: type[Error]):
    rig.gate.refuse = lambda call: answer if is_launch(call) else None
    with pytest.raises(Error) as refusal:
        await rig.provider.provision(rig.intent)
    assert type(refusal.value) is family


async def test_too_many_requests_are_told_with_the_time_to_wait(rig: LambdaRig):
    said = error(429, "global/too-many-requests", "Too many requests.")
    rig.gate.refuse = lambda _: replace(said, headers={"Retry-After": "7"})
    with pytest.raises(Retry) as refusal:
        await rig.provider.list("navarch-a")
    assert refusal.value.code == "provider.rate_limit"
    assert refusal.value.after == Duration.of(seconds=7)


async def test_one_launch_in_twelve_seconds_and_who_waits_asks_nothing():
    clock = HandClock()
    async with lambda_api(clock, launch_every=Duration.of(seconds=12)) as rig:
        await rig.provider.provision(rig.intent)
        rig.gate.calls.clear()
        second = replace(rig.intent, id=SystemIds().new(IntentId))
        with pytest.raises(Retry) as wait:
            await rig.provider.provision(second)
        assert (wait.value.code, rig.gate.calls) == ("provider.rate_limit", [])
        assert wait.value.after is not None
        await clock.sleep(wait.value.after)
        await rig.provider.provision(second)
        assert rig.cloud.launches == 2


async def test_requests_go_out_at_the_pace_the_account_allows():
    clock = HandClock()
    async with lambda_api(clock, every=Duration.of(seconds=1)) as rig:
        for _ in range(5):
            await rig.provider.list("navarch-a")
        assert clock.passed == Duration.of(seconds=4)


async def test_a_lost_launch_is_not_repeated_while_it_may_still_take_effect():
    """The list lags: the machine is there and not to be seen. Asking again too early would buy a second one."""
    clock = HandClock()
    async with lambda_api(clock) as rig:
        rig.lose_answers()
        rig.cloud.hidden = True
        for _ in range(3):
            with pytest.raises(Deadline):
                await rig.provider.provision(rig.intent)
        assert rig.cloud.launches == 1
        rig.answer_again()
        rig.cloud.hidden = False
        await rig.provider.provision(rig.intent)
        assert rig.cloud.launches == 1


async def test_a_launch_that_never_arrived_is_repeated_when_it_cannot_take_effect_any_more():
    clock = HandClock()
    async with lambda_api(clock) as rig:
        rig.gate.refuse = lambda call: Answer(502) if is_launch(call) else None
        with pytest.raises(Deadline):
            await rig.provider.provision(rig.intent)
        rig.gate.refuse = lambda _: None
        await clock.sleep(SETTLED)
        await rig.provider.provision(rig.intent)
        assert rig.cloud.launches == 1


async def test_a_refused_launch_may_be_tried_again_at_once(rig: LambdaRig):
    rig.empty()
    with pytest.raises(Error):
        await rig.provider.provision(rig.intent)
    rig.gate.refuse = lambda _: None
    assert (await rig.provider.provision(rig.intent)).intent == rig.intent.id


async def test_an_intent_of_an_earlier_process_waits_until_its_launch_must_be_seen():
    """Nobody remembers whether the process before this one had sent it."""
    clock = HandClock()
    async with lambda_api(clock) as rig:
        clock.passed = Duration.of(seconds=5)
        next_life = LambdaProvider("lambda", settings(rig.gate), clock)
        with pytest.raises(Deadline, match="may still take effect"):
            await next_life.provision(rig.intent)
        await clock.sleep(SETTLED)
        await next_life.provision(rig.intent)
        assert rig.cloud.launches == 1
        await next_life.close()


async def test_prices_are_told_for_the_regions_of_the_pools_with_what_is_to_be_had(rig: LambdaRig):
    assert await rig.provider.offerings([TYPE, "gpu_9x_none"]) == [
        Offering(TYPE, "us-south-1", 23.92, available=True),
        Offering(TYPE, "us-west-2", 23.92, available=False),
    ]


async def test_a_machine_that_was_preempted_is_gone(rig: LambdaRig):
    machine = await rig.provider.provision(rig.intent)
    rig.cloud.instances[machine.id]["status"] = "preempted"
    assert (await rig.provider.describe(machine.id)).state is MachineState.GONE
    assert await rig.provider.list("navarch-a") == []


async def test_an_id_that_would_leave_its_path_is_no_machine(rig: LambdaRig):
    with pytest.raises(NotFound):
        await rig.provider.describe(MachineId("../ssh-keys"))
    assert rig.gate.calls == []


async def test_a_machine_is_rebooted(rig: LambdaRig):
    machine = await rig.provider.provision(rig.intent)
    await rig.provider.reboot(machine.id)
    assert rig.gate.calls[-1].path.endswith("/instance-operations/restart")


async def test_a_cloud_that_never_answers_is_not_waited_for(rig: LambdaRig, monkeypatch: pytest.MonkeyPatch):
    """It has made the machine all the same: asked again, it has it."""
    with monkeypatch.context() as impatient:
        impatient.setattr("neorion.capacity.lambda_cloud.api.TIMEOUT", Duration.of(ms=200))
        rig.gate.hang = is_launch
        with pytest.raises(Deadline):
            await rig.provider.provision(rig.intent)
    rig.gate.hang = lambda _: False
    assert (await rig.provider.provision(rig.intent)).intent == rig.intent.id
    assert len(await rig.provider.list(rig.intent.owner)) == 1


async def test_nobody_answers_where_nobody_listens(rig: LambdaRig):
    nowhere = replace(settings(rig.gate), url="http://127.0.0.1:9")
    provider = LambdaProvider("lambda", nowhere, SystemClock())
    with pytest.raises(Deadline):
        await provider.list("navarch-a")
    await provider.close()


async def test_no_refusal_shows_the_key(rig: LambdaRig, caplog: pytest.LogCaptureFixture):
    rig.gate.refuse = lambda _: LOCKED_OUT
    with pytest.raises(Denied) as denied:
        await rig.provider.list("navarch-a")
    told = f"{denied.value} {denied.value.hint} {caplog.text} {rig.provider!r} {settings(rig.gate)!r}"
    assert KEY not in told
