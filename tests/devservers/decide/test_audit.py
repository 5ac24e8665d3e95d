"""An audit log shows what was done to it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.decide.audit import Head, head_of, line_of, parse, sealed, verify
from neorion.devservers.model.audit import AuditEvent, AuditRecord


def a_log(count: int) -> list[bytes]:
    lines: list[bytes] = []
    head = Head()
    for number in range(count):
        record = AuditRecord(
            number=0,
            time="2026-11-18T12:00:00.000Z",
            event=AuditEvent.SESSION,
            connection="ssh-1",
            user="ann",
            command=f"echo {number}",
        )
        done = sealed(record, head)
        lines.append(line_of(done).rstrip(b"\n"))
        head = head_of(done)
    return lines


def test_a_log_that_nobody_touched_is_whole():
    head, flaws = verify(a_log(5))
    assert (head.number, flaws) == (5, [])


def test_a_log_goes_on_where_the_file_before_it_ended():
    assert verify(a_log(5)[2:])[1] == []


@given(st.integers(min_value=0, max_value=4), st.data())
def test_every_edit_of_a_line_is_found(line: int, data: st.DataObject):
    lines = a_log(5)
    at = data.draw(st.integers(min_value=0, max_value=len(lines[line]) - 1))
    byte = data.draw(st.integers(min_value=0, max_value=255))
    edited = lines[line][:at] + bytes((byte,)) + lines[line][at + 1 :]
    if parse(edited) == parse(lines[line]):
        return
    _, flaws = verify([*lines[:line], edited, *lines[line + 1 :]])
    assert flaws


SPOILT: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "dropped": lambda lines: [*lines[:2], *lines[3:]],
    "moved": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "repeated": lambda lines: [*lines, lines[4]],
    "not a record": lambda lines: [*lines[:2], b"{}", *lines[2:]],
    "another user": lambda lines: [*lines[:1], lines[1].replace(b"ann", b"bob"), *lines[2:]],
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_line_that_is_dropped_moved_or_added_is_found(how: str):
    assert verify(SPOILT[how](a_log(5)))[1]


def test_a_log_that_was_cut_off_shows_it_by_its_head():
    whole, _ = verify(a_log(5))
    cut, flaws = verify(a_log(4))
    assert flaws == []
    assert cut != whole
