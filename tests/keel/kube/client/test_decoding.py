"""From bytes to objects: however the bytes are cut, whatever the server leaves empty."""

import json
from collections.abc import AsyncIterator
from itertools import pairwise

import anyio
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Deadline, Error, Terminal
from neorion.keel.kube import (
    Added,
    Bookmark,
    Deleted,
    Modified,
    PodLogOptions,
    ResourceExpired,
    Selector,
    WatchEvent,
)
from neorion.keel.kube.client import Client, decoding
from neorion.keel.kube.client.decoding import decode, decode_events
from neorion.keel.kube.core import CONFIG_MAP, DEFINITION, POD, Pod
from tests.keel.kube.stage import staged, status

pytestmark = pytest.mark.anyio

LINES = [
    {"type": "ADDED", "object": {"kind": "Pod", "metadata": {"name": "a", "resourceVersion": "1"}}},
    {"type": "MODIFIED", "object": {"metadata": {"name": "ü" * 50}, "status": {"podIP": "10.0.0.1"}}},
    {
        "type": "BOOKMARK",
        "object": {"kind": "Pod", "metadata": {"resourceVersion": "7", "creationTimestamp": None}},
    },
    {"type": "DELETED", "object": {"metadata": {"name": "a"}, "spec": {"containers": None}}},
]
STREAM = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in LINES)


async def in_pieces(stream: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    edges = [0, *sorted(cut % len(stream) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        if start < end:
            yield stream[start:end]


async def decoded(stream: bytes, cuts: list[int]) -> list[WatchEvent[Pod]]:
    return [event async for event in decode_events(POD, in_pieces(stream, cuts))]


async def watched(client: Client, seen: list[object]) -> None:
    """Remembers what came before an error."""
    async with client.watch(POD, since="1") as events:
        async for event in events:
            seen.append(event)  # noqa: PERF401 -- what came before an error counts


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0), max_size=20))
def test_events_are_the_same_however_the_stream_is_cut(cuts: list[int]):
    events = anyio.run(decoded, STREAM, cuts)
    assert [type(event) for event in events] == [Added, Modified, Bookmark, Deleted]
    assert events[2] == Bookmark("7")
    assert isinstance(events[1], Modified)
    assert events[1].object.status.pod_ip == "10.0.0.1"


async def test_a_line_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decoding, "LINE_MAX", 1_000)
    with pytest.raises(Terminal) as refused:
        await decoded(b"x" * 5_000, list(range(0, 5_000, 100)))
    assert refused.value.code == "kube.endless_line"


def test_nulls_are_absent_fields():
    body = b'{"metadata": {"name": "d", "labels": null}, "status": {"conditions": null}}'
    assert decode(DEFINITION, body).status.conditions == ()


def test_fields_that_nobody_declared_are_passed_over():
    body = b'{"metadata": {"name": "p", "managedFields": [{"big": [1, 2]}]}, "spec": {"new": {"in": 1.99}}}'
    assert decode(POD, body).meta.name == "p"


def test_a_field_of_another_type_names_the_kind_and_the_place():
    with pytest.raises(Terminal) as refused:
        decode(POD, b'{"spec": {"nodeName": 7}}')
    assert refused.value.code == "kube.shape"
    assert "Pod" in str(refused.value)
    assert "$.spec.nodeName" in str(refused.value)


async def test_a_watch_asks_for_bookmarks_and_for_what_is_there():
    asked: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        return web.Response(body=STREAM)

    async with staged(handle) as client:
        async with client.watch(POD, "n", Selector("app=web", "spec.nodeName=x")) as events:
            assert len([event async for event in events]) == 4
        async with client.watch(POD, since="17") as events:
            assert len([event async for event in events]) == 4
    first, second = asked
    assert (first["sendInitialEvents"], first["resourceVersionMatch"]) == ("true", "NotOlderThan")
    assert (first["labelSelector"], first["fieldSelector"]) == ("app=web", "spec.nodeName=x")
    assert (second["resourceVersion"], second["allowWatchBookmarks"]) == ("17", "true")
    assert "sendInitialEvents" not in second
    assert 300 <= int(first["timeoutSeconds"]) < 600


async def test_a_server_that_begins_no_watch_with_a_list_is_listed_and_then_watched():
    asked: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(dict(request.query))
        if "sendInitialEvents" in request.query:
            cause = {"reason": "FieldValueForbidden", "field": "sendInitialEvents", "message": "no"}
            return status(422, "Invalid", "sendInitialEvents is forbidden", causes=[cause])
        if "watch" in request.query:
            return web.Response(body=json.dumps(LINES[3]).encode() + b"\n")
        return web.json_response(
            {"metadata": {"resourceVersion": "5"}, "items": [LINES[0]["object"], LINES[1]["object"]]}
        )

    async with staged(handle) as client, client.watch(POD, "n", Selector(labels="a=b")) as events:
        came = [event async for event in events]
    assert [type(event) for event in came] == [Added, Added, Bookmark, Deleted]
    assert came[2] == Bookmark("5", initial_done=True)
    assert asked[-1]["resourceVersion"] == "5"
    assert {query["labelSelector"] for query in asked} == {"a=b"}


async def test_a_version_that_is_too_old_is_expired_whichever_way_it_is_told():
    error = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (9)"}

    async def as_event(_: web.Request) -> web.Response:
        return web.Response(text=json.dumps({"type": "ERROR", "object": error}) + "\n")

    async def as_answer(_: web.Request) -> web.Response:
        return status(410, "Gone", "too old resource version: 1 (9)")

    for handle in (as_event, as_answer):
        async with staged(handle) as client:
            with pytest.raises(ResourceExpired):
                await watched(client, [])


async def test_a_watch_that_is_cut_in_the_middle_says_so_after_what_came():
    async def handle(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        await answer.write(STREAM[: STREAM.index(b"\n") + 20])
        assert request.transport is not None
        request.transport.close()
        return answer

    seen: list[object] = []
    async with staged(handle) as client:
        with pytest.raises(Deadline) as cut:
            await watched(client, seen)
    assert cut.value.code == "kube.lost"
    assert [type(event) for event in seen] == [Added]


async def test_a_callers_own_timeout_stays_the_callers():
    async def handle(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await anyio.sleep_forever()
        return answer

    async def impatient(client: Client) -> None:
        async with client.watch(POD, since="1") as events:
            with anyio.fail_after(0.05):
                await anext(events)

    async with staged(handle) as client:
        with pytest.raises(TimeoutError):
            await impatient(client)


async def test_a_list_is_fetched_page_by_page_and_anew_when_its_moment_is_forgotten():
    asked: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        if "limit" not in request.query:
            names, meta = ["x", "y", "z"], {"resourceVersion": "9"}
        elif "continue" not in request.query:
            names, meta = ["a"], {"resourceVersion": "5", "continue": "more"}
        elif request.query["continue"] == "more":
            names, meta = ["b"], {"resourceVersion": "5", "continue": "even more"}
        else:
            return status(410, "Expired", "The provided continue parameter is too old")
        return web.json_response(
            {"metadata": meta, "items": [{"metadata": {"name": name}} for name in names]}
        )

    async with staged(handle) as client:
        listed = await client.list(CONFIG_MAP, "n")
    assert [one.meta.name for one in listed.items] == ["x", "y", "z"]
    assert listed.version == "9"
    assert [asked[1]["continue"], asked[2]["continue"]] == ["more", "even more"]


async def test_an_empty_list_may_be_null():
    async def handle(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {"resourceVersion": "5"}, "items": None})

    async with staged(handle) as client:
        assert list((await client.list(CONFIG_MAP)).items) == []


async def test_logs_are_followed_as_they_come():
    asked: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(dict(request.query))
        answer = web.StreamResponse()
        await answer.prepare(request)
        for line in (b"one\n", b"two\n"):
            await answer.write(line)
        return answer

    wanted = PodLogOptions("main", follow=True, tail_lines=0)
    async with staged(handle) as client, client.logs("p", "n", wanted) as pieces:
        assert b"".join([piece async for piece in pieces]) == b"one\ntwo\n"
    assert asked == [{"follow": "true", "container": "main", "tailLines": "0"}]


async def test_the_log_of_a_pod_that_is_not_there_is_an_error():
    async def handle(_: web.Request) -> web.Response:
        return status(404, "NotFound", 'pods "p" not found', name="p")

    async with staged(handle) as client:
        with pytest.raises(Error) as missing:
            async with client.logs("p", "n"):
                pass
    assert missing.value.code == "kube.not_found"
