"""What is on disk: ends, results, frames. Cut anywhere, nothing that is read is wrong."""

import os
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.iris.adapters.runtimes.process import protocol, result_file
from neorion.iris.adapters.runtimes.process.forkserver import exit_log
from neorion.iris.adapters.runtimes.process.forkserver.event_loop import DEAD_MAX, SelectorLoop
from neorion.iris.adapters.runtimes.process.forkserver.exit_log import ExitLog
from neorion.iris.adapters.runtimes.process.protocol import Codec, ExitInfo, Reply, Stop
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.ports import AttemptExit, ExitKind
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import SystemClock
from tests.iris.runtimes.conftest import LEASE, Orders, forkserver, gone

ENDS = {
    "a": ExitInfo(ExitKind.EXIT, 3, "x" * 50),
    "b": ExitInfo(ExitKind.LOST),
    "c": ExitInfo(ExitKind.EXIT, 0, "", True, 7),
}


def written(path: Path) -> bytes:
    book = ExitLog(path)
    for attempt, end in ENDS.items():
        book.append(attempt, end, durable=True)
        book.write()
    return path.read_bytes()


def test_ends_are_read_back(tmp_path: Path):
    written(tmp_path / "ends")
    assert ExitLog(tmp_path / "ends").ends == ENDS


def test_a_journal_cut_anywhere_holds_a_beginning_of_what_was_written(tmp_path: Path):
    data = written(tmp_path / "ends")
    beginnings = [dict(list(ENDS.items())[:count]) for count in range(4)]
    for length in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:length])
        assert ExitLog(tmp_path / "cut").ends in beginnings[:3]


def test_a_flipped_bit_hides_what_follows_and_makes_nothing_up(tmp_path: Path):
    data = written(tmp_path / "ends")
    for at in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert ExitLog(tmp_path / "cut").ends.items() <= ENDS.items()


def test_a_cut_journal_takes_new_ends(tmp_path: Path):
    data = written(tmp_path / "ends")
    (tmp_path / "ends").write_bytes(data[:-3])
    book = ExitLog(tmp_path / "ends")
    book.append("d", ENDS["b"], durable=False)
    book.write()
    assert ExitLog(tmp_path / "ends").ends == {"a": ENDS["a"], "b": ENDS["b"], "d": ENDS["b"]}


def test_forgotten_ends_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exit_log, "DEAD_MAX", 10)
    book = ExitLog(tmp_path / "ends")
    for number in range(200):
        book.append(f"n{number}", ENDS["a"], durable=False)
        book.write()
        book.forget(f"n{number}")
    book.append("kept", ENDS["b"], durable=False)
    book.write()
    assert (tmp_path / "ends").stat().st_size < 30 * 100
    assert ExitLog(tmp_path / "ends").ends["kept"] == ENDS["b"]


def test_a_disk_without_room_loses_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    book = ExitLog(tmp_path / "ends")
    book.append("a", ENDS["a"], durable=False)
    real = os.write

    def short(fd: int, data: bytearray) -> int:
        return real(fd, bytes(data)[:5])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space"):
        book.write()
    monkeypatch.setattr(os, "write", real)
    book.append("b", ENDS["b"], durable=False)
    book.write()
    assert ExitLog(tmp_path / "ends").ends == {"a": ENDS["a"], "b": ENDS["b"]}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(value=values)
def test_any_value_comes_back(tmp_path_factory: pytest.TempPathFactory, value: object):
    path = tmp_path_factory.getbasetemp() / "any-value"
    assert result_file.write_value(str(path), value, flush=False)
    assert result_file.load(path) == value
    assert result_file.read_head(path).pickle_bytes > 0


def test_a_result_cut_anywhere_is_none(tmp_path: Path):
    result_file.write_error(str(tmp_path / "result"), ValueError("x"), flush=True)
    data = (tmp_path / "result").read_bytes()
    for length in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(Invalid):
            result_file.read_head(tmp_path / "cut")
    (tmp_path / "cut").write_bytes(data + b"x")
    with pytest.raises(Invalid):
        result_file.load(tmp_path / "cut")


def test_a_head_is_read_without_unpickling(tmp_path: Path):
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return os._exit, (1,)

    result_file.write_value(str(tmp_path / "result"), Bomb(), flush=False)
    assert result_file.read_head(tmp_path / "result").status is result_file.ResultStatus.VALUE


@given(cuts=st.lists(st.integers(0, 400), max_size=8))
def test_frames_arrive_however_they_are_cut(cuts: list[int]):
    sent = [Stop(number, "attempt" * number, 5) for number in range(12)]
    data = b"".join(protocol.frame(sent[at : at + 3]) for at in range(0, 12, 3))
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    codec = protocol.requests()
    heard = [one for start, end in pairwise(places) for one in codec.feed(data[start:end])]
    assert heard == sent


def test_a_frame_too_long_is_no_frame():
    with pytest.raises(protocol.FrameTooLong):
        list(protocol.reports().feed(b"\xff" * 8))


def test_a_frame_of_another_language_is_refused():
    codec: Codec[protocol.Report] = protocol.reports()
    with pytest.raises(msgspec.DecodeError):
        list(codec.feed(protocol.frame([{"no": "message"}])))
    assert list(protocol.reports().feed(protocol.frame([Reply(1)]))) == [Reply(1)]


def test_cancelled_timers_do_not_pile_up():
    loop = SelectorLoop()
    for _ in range(50 * DEAD_MAX):
        loop.after(10**15, lambda: None).cancel()
    assert len(loop._heap) <= 3 * DEAD_MAX


def tear(end: AttemptExit) -> None:
    assert end.result is not None
    Path(end.result).write_bytes(b"")


@pytest.mark.anyio
async def test_a_result_that_was_torn_is_lost_not_wrong(root: Path, orders: Orders):
    """As after a power cut: the end was written down, the result was not."""
    order = orders.call(lambda: 1)
    async with ProcessRuntime(root, SystemClock()) as first:
        await first.renew(LEASE)
        await first.start(order)
        end = await ended(first, order.attempt)
        server = os.pidfd_open(forkserver(root))
        await first.renew(Duration(1))
    await gone(server)
    tear(end)
    async with ProcessRuntime(root, SystemClock()) as second:
        assert (await ended(second, order.attempt)).kind is ExitKind.LOST
