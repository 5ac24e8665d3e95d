"""Three mistakes that people make, and what corrects them: the simulator must tell one from the other."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from neorion.keel.base import Duration, Retry
from neorion.keel.clock import fault_point
from neorion.keel.sim import Crash, Host, LinkConditions, Outcome, World, explore, simulate

Scenario = Callable[[World], Coroutine[Any, Any, None]]


async def withdrawals(world: World, *, locked: bool) -> None:
    """Check, then wait, then act: two withdrawals may both find the money that is there once."""
    balance = 100
    lock = anyio.Lock()

    async def withdraw(amount: int) -> None:
        nonlocal balance
        if balance >= amount:
            await world.clock.sleep(Duration.of(ms=world.rng.uniform(0, 5)))
            balance -= amount

    async def withdraw_safely(amount: int) -> None:
        async with lock:
            await withdraw(amount)

    async def client() -> None:
        await world.clock.sleep(Duration.of(ms=world.rng.uniform(0, 50)))
        await (withdraw_safely(70) if locked else withdraw(70))

    async with anyio.create_task_group() as group:
        group.start_soon(client)
        group.start_soon(client)
    assert balance >= 0, f"the balance is {balance}"


async def messages(world: World, *, repeated: bool) -> None:
    """A datagram may be lost: who counts on it must hear of its arrival, or send it again."""
    world.links.weather = LinkConditions(drop=0.05, duplicate=0.05)
    counted = list[int]()
    sent = anyio.Event()

    async def count(_host: Host) -> None:
        with world.network.mailbox("counter:in") as box:
            while True:
                sender, number = await box.receive()
                if number not in counted:
                    counted.append(number)
                world.network.send(f"{sender}:acks", number)

    async def send(host: Host) -> None:
        with world.network.mailbox("sender:acks") as acks:
            for number in range(5):
                world.network.send("counter:in", number)
                heard = -1
                while repeated and heard != number:
                    with anyio.move_on_after(0.1):
                        _, heard = await acks.receive()
                        continue
                    world.network.send("counter:in", number)
                await host.clock.sleep(Duration.of(ms=20))
        sent.set()

    world.host("counter").start(count)
    await world.sleep(0.01)
    world.host("sender").start(send)
    await sent.wait()
    await world.sleep(0.1)
    assert counted == [0, 1, 2, 3, 4]


async def notes(world: World, *, synced_first: bool) -> None:
    """What was acknowledged must be there after a crash."""
    world.faults.sometimes("notes.*", 0.1, Crash(down=Duration.of(ms=100)))
    acknowledged = list[bytes]()

    async def keep(host: Host) -> None:
        async def take(_caller: str, note: bytes) -> str:
            host.disk.append("notes", note)
            await fault_point("notes.written")
            if synced_first:
                await host.disk.sync("notes")
            await fault_point("notes.before_answer")
            return "kept"

        # A torn end was never acknowledged; what follows it must not be read as a part of it.
        whole, newline, _torn = host.disk.read("notes").rpartition(b"\n")
        host.disk.replace("notes", whole + newline)
        await host.disk.sync("notes")
        with world.network.serve("keeper:notes", take):
            await anyio.sleep_forever()

    keeper = world.host("keeper")
    keeper.start(keep)
    for number in range(8):
        note = b"%d\n" % number
        while note not in acknowledged:
            try:
                await world.network.call("keeper:notes", note)
            except Retry:
                await world.sleep(0.05)
            else:
                acknowledged.append(note)
    if keeper.up:
        keeper.crash()
    kept = keeper.disk.read("notes").splitlines(keepends=True)
    assert set(acknowledged) <= set(kept), f"acknowledged {acknowledged}, kept {kept}"


PLANTED: dict[str, tuple[Scenario, Scenario]] = {
    "lost update": (
        lambda world: withdrawals(world, locked=False),
        lambda world: withdrawals(world, locked=True),
    ),
    "lost message": (
        lambda world: messages(world, repeated=False),
        lambda world: messages(world, repeated=True),
    ),
    "acknowledged before sync": (
        lambda world: notes(world, synced_first=False),
        lambda world: notes(world, synced_first=True),
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_found_within_two_hundred_seeds_and_replays_by_its_seed(mistake: str):
    wrong, _ = PLANTED[mistake]
    failure = explore(wrong, range(200), failures_max=1).first_failure
    assert failure is not None
    assert isinstance(failure.error, AssertionError)
    again: Outcome[None] = simulate(wrong, failure.seed)
    assert (again.digest, again.tail, again.steps) == (failure.digest, failure.tail, failure.steps)
    assert str(again.error) == str(failure.error)


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_corrected_program_survives_a_thousand_seeds(mistake: str):
    _, right = PLANTED[mistake]
    report = explore(right, range(1_000), failures_max=1)
    if report.first_failure is not None:
        report.first_failure.check()
    assert report.runs == 1_000
