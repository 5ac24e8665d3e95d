"""The loop that shakes tests: answers come in more than one order, and all of them come."""

import asyncio
import itertools
import socket

import pytest

from tests.shaken import ShakenLoop, reordered


async def _order_of_answers() -> tuple[int, ...]:
    came = list[int]()
    pairs = [socket.socketpair() for _ in range(3)]

    async def hear(number: int) -> None:
        pairs[number][0].setblocking(False)
        await asyncio.get_running_loop().sock_recv(pairs[number][0], 1)
        came.append(number)

    async def speak() -> None:
        for _, speaker in pairs:
            speaker.send(b"x")

    await asyncio.gather(*(hear(number) for number in range(3)), speak())
    for one in pairs:
        for end in one:
            end.close()
    return tuple(came)


def _orders(loop: asyncio.AbstractEventLoop) -> list[tuple[int, ...]]:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return [runner.run(_order_of_answers()) for _ in range(30)]


def test_answers_come_in_more_than_one_order_and_none_is_lost():
    found = _orders(ShakenLoop("1"))
    assert len(set(found)) > 1
    assert {tuple(sorted(order)) for order in found} == {(0, 1, 2)}


def test_an_ordinary_loop_has_one_order():
    assert len(set(_orders(asyncio.SelectorEventLoop()))) == 1


def test_timers_are_late_and_never_early():
    loop = ShakenLoop("1")
    try:
        late = [loop.call_at(1000, int).when() - 1000 for _ in range(100)]
    finally:
        loop.close()
    assert min(late) == 0
    assert max(late) > 0


def test_tests_change_places_within_their_file_and_files_among_each_other(pytester: pytest.Pytester):
    for name in ("a", "b", "c"):
        pytester.makepyfile(**{f"test_{name}": "\n".join(f"def test_{n}(): pass" for n in range(9))})
    tests, _ = pytester.inline_genitems()
    before = [test.nodeid for test in tests]
    after = [test.nodeid for test in reordered(tests, "1")]
    assert sorted(after) == sorted(before)
    assert after != before
    files = [name.partition("::")[0] for name in after]
    assert len(list(itertools.groupby(files))) == 3
    assert [test.nodeid for test in reordered(tests, "1")] == after
