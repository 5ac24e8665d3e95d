"""HTTP as bytes: the same answer however it is cut, and nothing taken for an answer that is none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Invalid
from neorion.keel.http.message import ProtocolError, ResponseHead, ResponseParser, write_head

OK = b"HTTP/1.1 200 OK\r\n"
CUTS = st.lists(st.integers(min_value=0), max_size=12)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges) if start < end]


def chunked(chunks: list[bytes]) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


def head_of(stream: bytes) -> ResponseHead:
    reading = ResponseParser()
    reading.feed(stream)
    assert reading.head is not None
    return reading.head


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=8), CUTS)
def test_a_body_in_chunks_is_the_same_however_it_is_cut(chunks: list[bytes], cuts: list[int]):
    reading, came = ResponseParser(), b""
    for _ in range(2):
        reading.expect()
        for piece in pieces(chunked(chunks), cuts):
            assert not reading.done
            reading.feed(piece)
            came += reading.take()
        assert reading.done
    assert came == b"".join(chunks) * 2


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8), st.data())
def test_an_answer_that_is_cut_off_is_not_done(chunks: list[bytes], data: st.DataObject):
    whole = chunked(chunks)
    reading = ResponseParser()
    reading.feed(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert not reading.done
    assert not reading.end()


def test_what_stands_behind_a_body_says_nothing_about_it():
    reading = ResponseParser()
    reading.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    reading.feed(b"0\r\nTransfer-Encoding: gzip\r\nRetry-After: 9\r\n\r\n")
    assert reading.head is not None
    assert reading.head.headers == {"transfer-encoding": "chunked"}
    assert reading.take() == b"a"
    assert reading.done


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nX-Half: an ans", b"what is this"])
def test_an_answer_with_something_behind_it_is_never_done(more: bytes):
    reading = ResponseParser()
    reading.feed(OK + b"Content-Length: 3\r\n\r\nab")
    with pytest.raises(ProtocolError):
        reading.feed(b"c" + more)
    assert not reading.done


def test_a_body_of_untold_length_ends_with_its_connection():
    reading = ResponseParser()
    reading.feed(OK + b"\r\nall of it")
    assert not reading.done
    assert reading.end()
    assert reading.take() == b"all of it"


def test_who_asks_for_patience_has_not_answered():
    reading = ResponseParser()
    # Also in words that came up after this was written.
    for status in (b"100 Continue", b"103 Early Hints", b"104 Upload Resumption Supported"):
        reading.feed(b"HTTP/1.1 " + status + b"\r\nLink: x\r\n\r\n")
        assert reading.head is None
        assert not reading.done
    reading.feed(OK + b"Content-Length: 0\r\n\r\n")
    assert reading.head == ResponseHead(200, "OK", {"content-length": "0"}, stays=True)
    assert reading.done


def test_a_head_says_what_was_sent_and_whether_the_connection_stays():
    head = head_of(b"HTTP/1.1 404 Not Found\r\nRetry-After:  7 \r\nX: a:b\r\nContent-Length: 0\r\n\r\n")
    assert (head.status, head.reason, head.stays) == (404, "Not Found", True)
    assert head.headers == {"retry-after": "7", "x": "a:b", "content-length": "0"}
    assert not head_of(OK + b"Connection: Close\r\nContent-Length: 0\r\n\r\n").stays
    assert not head_of(OK + b"\r\n").stays
    assert not head_of(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").stays
    assert head_of(b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n").reason == ""


def test_after_a_change_of_protocol_nothing_is_read_as_http():
    reading = ResponseParser()
    reading.feed(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x82\x01a"
    )
    assert reading.behind == b"\x82\x01a"
    assert reading.head is not None
    assert not reading.head.stays


@pytest.mark.parametrize(
    "stream",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"Content-Length: -5\r\n\r\n",
        OK + b"Content-Length: 5, 6\r\n\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Content-Length: 3\r\n\r\nabcd",
        OK + b"Content-Length: 0\r\n\r\n" + OK,
        OK + b"X: " + b"x" * 70_000,
        *(
            OK + b"Transfer-Encoding: chunked\r\n\r\n" + body
            for body in (b"-1\r\n", b"\r\n", b"0x3\r\nabc\r\n", b"f" * 17 + b"\r\n", b"3\r\nabcd\r\n")
        ),
    ],
)
def test_what_is_no_answer_is_refused(stream: bytes):
    with pytest.raises(ProtocolError):
        ResponseParser().feed(stream)


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "a\0b"])
@pytest.mark.parametrize("place", ["header", "path"])
def test_nothing_can_smuggle_a_line_into_a_request(place: str, value: str):
    header, path = (value, "") if place == "header" else ("", value)
    with pytest.raises(Invalid) as refused:
        write_head("GET", f"/{path}", [("Authorization", f"Bearer {header}")])
    assert refused.value.code == "http.header"
