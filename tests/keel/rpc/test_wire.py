"""An error is the same error on the other side of the wire."""

import json
import struct

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import FAMILIES, Duration, Error, NoCapacity, QuotaExceeded, Retry, Terminal
from neorion.keel.rpc import connect_errors, http_errors, wire
from neorion.keel.rpc.gen.errors_pb import ErrorDetail

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
MS = st.none() | st.integers(0, (2**63 - 1) // 1_000_000)


@st.composite
def errors(draw: st.DrawFn) -> Error:
    family = draw(st.sampled_from(sorted(FAMILIES.values(), key=lambda family: family.family)))
    code, sentence, hint = draw(TEXT), draw(TEXT), draw(TEXT)
    if issubclass(family, Retry):
        ms = draw(MS)
        return family(code, sentence, hint=hint, after=None if ms is None else Duration(ms * 1_000_000))
    if issubclass(family, NoCapacity | QuotaExceeded):
        return family(code, sentence, hint=hint, scope=draw(TEXT))
    return family(code, sentence, hint=hint)


@given(errors())
def test_every_family_comes_back_as_it_was(error: Error) -> None:
    again = connect_errors.from_connect(connect_errors.to_connect(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)


@given(errors())
def test_the_forms_we_write_ourselves_say_the_same(error: Error) -> None:
    unary = json.loads(wire.connect_body(error))
    for again in (
        wire.from_connect_body(500, wire.connect_body(error)),
        wire.from_connect_end(wire.connect_end(error)[5:]),
    ):
        assert type(again) is type(error)
        assert vars(again) == vars(error)
    flags, length = struct.unpack(">BI", wire.connect_end(error)[:5])
    end = json.loads(wire.connect_end(error)[5:])
    assert (flags, length) == (2, len(wire.connect_end(error)) - 5)
    assert end == {"error": unary}
    assert unary["code"] == connect_errors.to_connect(error).code.value
    assert unary["details"][0]["debug"] == json.loads(http_errors.plain_body(error))


def test_a_family_and_its_connect_code_have_the_same_http_status() -> None:
    from connectrpc._protocol import ConnectWireError  # noqa: PLC0415 -- the only place where its statuses are told

    for family in FAMILIES.values():
        error = connect_errors.to_connect(family("a.b", "c"))
        assert ConnectWireError.from_exception(error).to_http_status().code == family.http_status


def test_a_wait_is_rounded_up_so_that_nobody_comes_too_early() -> None:
    assert http_errors.retry_after_ms(Retry("a.b", "c", after=Duration(1))) == 1
    assert http_errors.retry_after_ms(Retry("a.b", "c", after=Duration(0))) == 0
    assert http_errors.retry_after_ms(Terminal("a.b", "c")) is None


@pytest.mark.parametrize("code", list(Code))
def test_an_error_of_a_foreign_server_still_has_a_family(code: Code) -> None:
    error = connect_errors.from_connect(ConnectError(code, "what they say"))
    assert type(error) in FAMILIES.values()
    assert (error.code, error.sentence) == (f"rpc.{code.value}", "what they say")


def test_a_newer_family_is_final_and_a_broken_detail_is_passed_over() -> None:
    newer = ConnectError(Code.ABORTED, "m", [ErrorDetail(family="tomorrow", code="a.b", sentence="s")])
    assert type(connect_errors.from_connect(newer)) is Terminal
    detail = connect_errors.to_connect(Terminal("a.b", "c")).details[0]
    detail._any.value = b"\xff\xff"
    assert connect_errors.from_connect(ConnectError(Code.ABORTED, "m", [detail])).family == "conflict"


def test_text_that_utf8_cannot_carry_does_not_turn_one_error_into_another() -> None:
    error = Terminal("a.b", "file \udcff", hint="\ud800")
    assert connect_errors.from_connect(connect_errors.to_connect(error)).sentence == "file ?"
    assert json.loads(wire.connect_body(error))["message"] == "file ?"


@pytest.mark.parametrize(
    ("status", "family"),
    [
        (400, "terminal"),
        (401, "unauthenticated"),
        (403, "denied"),
        (404, "terminal"),
        (429, "retry"),
        (503, "retry"),
    ],
)
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"\xff", b"[" * 100_000, b'{"code": 7}', b'{"code": "new"}', b"[]"]
)
def test_an_answer_that_is_not_connects_is_understood_by_its_status(
    status: int, family: str, body: bytes
) -> None:
    error = wire.from_connect_body(status, body)
    assert error.family == family
    assert error.sentence == f"The server answers with HTTP status {status}."


def test_the_end_of_a_stream_has_an_error_or_none() -> None:
    assert wire.from_connect_end(b"{}") is None
    assert wire.from_connect_end(b'{"metadata": {}}') is None
    odd = wire.from_connect_end(
        b'{"error": {"code": "aborted", "details": [{"type": "x", "value": "?"}, {}]}}'
    )
    assert odd is not None
    assert odd.family == "conflict"
    broken = wire.from_connect_end(b"not JSON")
    assert broken is not None
    assert broken.family == "terminal"
