from dataclasses import replace
from functools import partial
from itertools import permutations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Duration, Retry, Terminal
from neorion.keel.sim import Host, World, explore
from neorion.keel.sim.linearizability import (
    Action,
    Operation,
    OperationHistory,
    Read,
    Swap,
    Write,
    linearizable,
)

ACTIONS = st.one_of(
    st.just(Read()),
    st.builds(Write, st.integers(0, 2)),
    st.builds(Swap, st.integers(0, 2), st.integers(0, 2)),
)


@st.composite
def operations(draw: st.DrawFn) -> list[Operation]:
    size = draw(st.integers(1, 5))
    moments = draw(st.permutations(range(2 * size)))
    made = list[Operation]()
    for index in range(size):
        began, ended = sorted(moments[2 * index : 2 * index + 2])
        action: Action = draw(ACTIONS)
        answer = draw(st.booleans() if isinstance(action, Swap) else st.integers(0, 2))
        made.append(Operation(action, began, draw(st.sampled_from([ended, None])), answer))
    return made


def explained(order: tuple[Operation, ...]) -> bool:
    value: object = 0
    for index, operation in enumerate(order):
        if any(later.ended is not None and later.ended < operation.began for later in order[index:]):
            return False
        fits, value = operation.after(value)
        if not fits:
            return False
    return True


def by_trying_everything(history: list[Operation]) -> bool:
    """Every order of every choice of those unknown operations that happened."""
    unknown = [operation for operation in history if operation.ended is None]
    known = [operation for operation in history if operation.ended is not None]
    for choice in range(2 ** len(unknown)):
        chosen = known + [operation for index, operation in enumerate(unknown) if choice >> index & 1]
        if any(explained(order) for order in permutations(chosen)):
            return True
    return False


@given(operations())
def test_the_search_agrees_with_trying_everything(history: list[Operation]):
    assert linearizable(history, 0) == by_trying_everything(history)


def test_a_read_of_an_old_value_after_a_write_has_ended_is_no_register():
    write = Operation(Write(1), 0, 1)
    assert not linearizable([write, Operation(Read(), 2, 3, 0)], 0)
    assert linearizable([write, Operation(Read(), 2, 3, 1)], 0)
    assert linearizable([replace(write, ended=4), Operation(Read(), 2, 3, 0)], 0)


def test_a_history_too_wide_to_search_says_so():
    wide = [Operation(Write(number), number, 100 + number) for number in range(24)]
    with pytest.raises(Terminal) as caught:
        linearizable([*wide, Operation(Read(), 200, 201, "never written")], 0)
    assert caught.value.code == "sim.history_too_wide"


async def primary(_host: Host, world: World) -> None:
    """Answers at once and copies to the backup when it can: reads of the backup may be stale."""
    value = 0

    async def serve(_caller: str, request: Action) -> int:
        nonlocal value
        if isinstance(request, Write):
            value = int(str(request.value))
            world.network.send("backup:copy", value)
        return value

    with world.network.serve("primary:register", serve):
        await anyio.sleep_forever()


async def backup(_host: Host, world: World) -> None:
    value = 0

    async def serve(_caller: str, _request: Action) -> int:
        return value

    with world.network.serve("backup:register", serve), world.network.mailbox("backup:copy") as copies:
        while True:
            _, value = await copies.receive()


async def replicated_register(world: World, *, read_from: str) -> None:
    history = OperationHistory(initial=0)

    async def client(host: Host) -> None:
        for number in range(4):
            read = host.rng.random() < 0.5
            action = Read() if read else Write(10 * number + ord(host.name[-1]))
            address = f"{read_from if read else 'primary'}:register"
            try:
                await history.record("value", action, world.network.call(address, action))
            except Retry:
                world.note("lost an answer")
            await host.clock.sleep(Duration.of(ms=host.rng.uniform(0, 3)))

    world.host("primary").start(partial(primary, world=world))
    world.host("backup").start(partial(backup, world=world))
    await world.sleep(0.01)
    for name in ("client-a", "client-b", "client-c"):
        world.host(name).start(client)
    await world.sleep(world.rng.uniform(0, 0.02))
    world.network.reset("client-a", "primary")
    await world.sleep(1)
    world.check(history.violations)
    await world.sleep(0)


def test_a_stale_replica_is_found_and_the_primary_alone_is_linearizable():
    stale = partial(replicated_register, read_from="backup")
    failure = explore(stale, range(200), failures_max=1).first_failure
    assert failure is not None
    assert "history.not_linearizable value: no order explains" in str(failure.error)
    report = explore(partial(replicated_register, read_from="primary"), range(200))
    assert report.failures == ()
    assert report.runs == 200
