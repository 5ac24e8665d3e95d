"""HTTP and WebSockets as bytes: the same answer however it is cut, and nothing taken for an answer that is none."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Invalid
from neorion.keel.kube.client.http import Body, Chunked, Counted, Garbled, body_of, read_head, write_head
from neorion.keel.kube.client.websocket import Frames, frame

CUTS = st.lists(st.integers(min_value=0), max_size=12)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges) if start < end]


def chunked(chunks: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def fed(body: Body, parts: list[bytes]) -> bytes:
    return b"".join(body.feed(part) for part in parts)


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=8), CUTS)
def test_a_body_in_chunks_is_the_same_however_it_is_cut(chunks: list[bytes], cuts: list[int]):
    body = Chunked()
    assert fed(body, pieces(chunked(chunks), cuts)) == b"".join(chunks)
    assert body.done


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8), st.data())
def test_a_body_in_chunks_that_is_cut_off_is_not_done(chunks: list[bytes], data: st.DataObject):
    whole = chunked(chunks)
    body = Chunked()
    body.feed(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert not body.done
    assert not body.end()


def test_what_stands_around_chunks_is_passed_over():
    body = Chunked()
    assert body.feed(b"3;name=value\r\nabc\r\n0\r\nTrailer: x\r\n\r\n") == b"abc"
    assert body.done


@pytest.mark.parametrize(
    "stream",
    [
        b"-1\r\n",
        b"\r\n",
        b"0x3\r\nabc\r\n",
        b"fffffffff\r\n",
        b"3\r\nabcd\r\n",
        b"0\r\n\r\nHTTP/1.1 200 OK",
        b"1" * 9000,
    ],
)
def test_chunks_that_are_none_are_refused(stream: bytes):
    with pytest.raises(Garbled):
        Chunked().feed(stream)


def test_a_body_that_is_longer_than_it_said_is_refused():
    with pytest.raises(Garbled):
        Counted(3).feed(b"abcd")


def test_a_head_says_what_was_sent_and_whether_the_connection_stays():
    head = read_head(b"HTTP/1.1 404 Not Found\r\nRetry-After:  7 \r\nX: a:b\r\n\r\n")
    assert (head.status, head.reason, head.stays) == (404, "Not Found", True)
    assert head.headers == {"retry-after": "7", "x": "a:b"}
    assert not read_head(b"HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n").stays
    assert not read_head(b"HTTP/1.0 200 OK\r\n\r\n").stays
    assert read_head(b"HTTP/1.1 200\r\n\r\n").reason == ""


@pytest.mark.parametrize(
    "block",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"\r\n\r\n",
    ],
)
def test_a_head_of_something_else_is_refused(block: bytes):
    with pytest.raises(Garbled):
        read_head(block)


@pytest.mark.parametrize(
    "header",
    [b"Content-Length: -5", b"Content-Length: 5, 6", b"Transfer-Encoding: gzip, chunked", b"no colon"],
)
def test_a_body_of_which_nobody_knows_the_end_is_refused(header: bytes):
    with pytest.raises(Garbled):
        body_of(read_head(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n"))


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "a\0b"])
@pytest.mark.parametrize("place", ["header", "path"])
def test_nothing_can_smuggle_a_line_into_a_request(place: str, value: str):
    header, path = (value, "") if place == "header" else ("", value)
    with pytest.raises(Invalid) as refused:
        write_head("GET", f"/{path}", [("Authorization", f"Bearer {header}")])
    assert refused.value.code == "kube.header"


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
def test_a_masked_frame_is_its_data_for_who_has_the_mask(data: bytes, mask: bytes):
    sent = frame(2, data, mask)
    start = len(sent) - len(data)
    assert sent[start - 4 : start] == mask
    assert bytes(byte ^ mask[at % 4] for at, byte in enumerate(sent[start:])) == data


def served(kind: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame as a server sends it, with its length in the shortest form."""
    first, size = kind | (0x80 if final else 0), len(data)
    if size < 126:
        return struct.pack("!BB", first, size) + data
    return (
        struct.pack("!BBH", first, 126, size) if size < 2**16 else struct.pack("!BBQ", first, 127, size)
    ) + data


@given(st.lists(st.sampled_from([0, 1, 125, 126, 65535, 65536]), max_size=4), CUTS)
def test_frames_are_the_same_however_they_are_cut(sizes: list[int], cuts: list[int]):
    sent = [(2, index % 2 == 0, bytes([index]) * size) for index, size in enumerate(sizes)]
    stream = b"".join(served(kind, data, final=final) for kind, final, data in sent)
    frames, came = Frames(), list[tuple[int, bool, bytes]]()
    for piece in pieces(stream, cuts):
        frames.feed(piece)
        while (found := frames.next()) is not None:
            came.append(found)
    assert came == sent


@pytest.mark.parametrize("start", [b"\xc2\x01", b"\x82\x81", struct.pack("!BBQ", 0x82, 127, 2**40)])
def test_frames_that_no_server_may_send_are_refused(start: bytes):
    frames = Frames()
    frames.feed(start)
    with pytest.raises(Garbled):
        frames.next()
