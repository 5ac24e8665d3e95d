"""What holds over every transport: one suite for real sockets and for memory."""

import gc

import anyio
import pytest

from neorion.keel.base import (
    Conflict,
    Deadline,
    Denied,
    Duration,
    Error,
    Invalid,
    Retry,
    Terminal,
    Unauthenticated,
)
from neorion.keel.http.client import Request, fetch
from neorion.keel.rpc import RequestLimits
from neorion.keel.rpc.call_context import CallContext
from neorion.keel.telemetry import correlated
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.world import TOKEN, OpenWorld

pytestmark = pytest.mark.anyio


async def test_a_unary_call_returns_the_answer(world: OpenWorld) -> None:
    async with world() as w:
        pong = await w.client.say(Ping(text="grüße", count=2**40))
        assert (pong.text, pong.count) == ("grüße", 2**40)


async def test_a_side_effect_free_call_may_be_a_get(world: OpenWorld) -> None:
    async with world() as w:
        path = "/neorion.tests.rpc.v1.Echo/Look?connect=v1&encoding=json&message=%7B%22text%22%3A%22x%22%7D"
        head, body = await fetch(w.channel._transports[0], Request("GET", path))
        assert (head.status, body) == (200, b'{"text":"x"}')


async def test_a_stream_arrives_in_order_and_ends(world: OpenWorld) -> None:
    async with world() as w:
        assert [pong.count async for pong in w.client.watch(Ping(count=500))] == list(range(500))


async def test_the_correlation_id_of_the_caller_reaches_the_handler(world: OpenWorld) -> None:
    async with world() as w:
        with correlated("req-from-far"):
            await w.client.say(Ping())
        await w.client.say(Ping())
        (name, first), (_, second) = w.echo.seen
        assert (name, first) == ("worker-1", "req-from-far")
        assert second.startswith("req-")
        assert second != first


async def test_without_a_token_the_caller_is_unknown(world: OpenWorld) -> None:
    async with world() as w:
        with pytest.raises(Unauthenticated) as caught:
            await w.client_with(None).say(Ping())
        assert caught.value.code == "rpc.no_token"


async def test_a_wrong_token_is_refused_for_calls_and_streams(world: OpenWorld) -> None:
    async with world() as w:
        client = w.client_with("wrong")
        with pytest.raises(Unauthenticated) as caught:
            await client.say(Ping())
        assert caught.value.code == "rpc.bad_token"
        with pytest.raises(Unauthenticated) as caught:
            await anext(client.watch(Ping(count=1)))
        assert caught.value.code == "rpc.bad_token"


async def test_a_role_that_is_missing_is_named(world: OpenWorld) -> None:
    async with world() as w:
        with pytest.raises(Denied) as caught:
            await w.client_with("reader").wait(Ping())
        assert not isinstance(caught.value, Unauthenticated)
        assert "worker" in caught.value.hint
        assert (await w.client_with("reader").say(Ping(text="known is enough"))).text


async def test_a_long_poll_is_a_call_that_something_wakes(world: OpenWorld) -> None:
    async with world() as w, anyio.create_task_group() as tasks:

        async def poll() -> None:
            assert (await w.client.wait(Ping(text="woken"))).text == "woken"

        tasks.start_soon(poll)
        await w.echo.begun.wait()
        assert w.echo.done == 0
        w.echo.go.set()


async def test_a_deadline_cancels_the_handler_and_tells_the_caller(world: OpenWorld) -> None:
    async with world() as w:
        with pytest.raises(Deadline) as caught:
            await w.client.wait(Ping(), timeout_ms=100)
        assert caught.value.code == "rpc.deadline"
        with anyio.fail_after(60):
            await w.echo.cancelled.wait()


async def test_the_server_has_a_deadline_of_its_own(world: OpenWorld) -> None:
    async with world(RequestLimits(call_time=Duration.of(ms=50), stream_time=Duration.of(ms=50))) as w:
        with pytest.raises(Deadline) as caught:
            await w.client.wait(Ping())
        assert caught.value.code == "rpc.deadline"
        stream = w.client.watch(Ping())
        assert (await anext(stream)).text == "first"
        with pytest.raises(Deadline):
            await anext(stream)


async def test_cancelling_the_caller_cancels_caller_and_handler(world: OpenWorld) -> None:
    async with world() as w:
        outcome: list[BaseException] = []

        async def call() -> None:
            try:
                await w.client.wait(Ping())
            except BaseException as error:
                outcome.append(error)
                raise

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await w.echo.begun.wait()
            tasks.cancel_scope.cancel()
        assert isinstance(outcome[0], anyio.get_cancelled_exc_class())
        with anyio.fail_after(60):
            await w.echo.cancelled.wait()


async def test_leaving_a_stream_cancels_its_handler(world: OpenWorld) -> None:
    async with world() as w:
        stream = w.client.watch(Ping())
        assert (await anext(stream)).text == "first"
        await w.echo.begun.wait()
        await stream.aclose()
        with anyio.fail_after(60):
            await w.echo.cancelled.wait()


async def test_an_error_of_the_handler_is_raised_by_the_client(world: OpenWorld) -> None:
    async with world() as w:
        w.echo.error = Conflict("store.fenced", "Somebody else owns it.", hint="Read again.")
        with pytest.raises(Conflict) as caught:
            await w.client.fail(Ping())
        error = caught.value
        assert (error.code, error.sentence, error.hint) == (
            "store.fenced",
            "Somebody else owns it.",
            "Read again.",
        )


async def test_an_error_in_the_middle_of_a_stream_keeps_what_came_before(world: OpenWorld) -> None:
    async with world() as w:
        w.echo.error = Retry("store.busy", "Not now.", after=Duration.of(ms=1500))
        stream = w.client.fail_late(Ping())
        assert (await anext(stream)).text == "one"
        with pytest.raises(Retry) as caught:
            await anext(stream)
        assert caught.value.after == Duration.of(ms=1500)


async def test_a_task_group_in_the_handler_does_not_hide_its_one_error(world: OpenWorld) -> None:
    async with world() as w:
        w.echo.error = ExceptionGroup("group", [Conflict("store.fenced", "No.")])
        with pytest.raises(Conflict):
            await w.client.fail(Ping())


async def test_an_unknown_exception_tells_nothing_of_the_inside(
    world: OpenWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async with world() as w:
        w.echo.error = KeyError("canary-inside")
        for failing in (w.client.fail(Ping()), anext(aiter_from_second(w))):
            with pytest.raises(Terminal) as caught, correlated("req-lookup"):
                await failing
            error = caught.value
            assert error.code == "rpc.internal"
            assert "canary" not in repr(error) + error.sentence + error.hint
            assert "req-lookup" in error.hint
        logged = [record for record in caplog.records if record.exc_info]
        assert len(logged) == 2
        assert "canary-inside" in caplog.text


async def aiter_from_second(w):
    stream = w.client.fail_late(Ping())
    await anext(stream)
    yield await anext(stream)


@pytest.mark.parametrize("size", [1_001, 20_000_000])
async def test_a_body_over_the_limit_is_refused_whole(world: OpenWorld, size: int) -> None:
    async with world(RequestLimits(body_bytes=1000)) as w:
        with pytest.raises(Invalid) as caught:
            await w.client.say(Ping(text="x" * size))
        assert caught.value.code == "rpc.too_large"
        assert w.echo.done == 0
        assert (await w.client.say(Ping(text="x" * 900))).text


async def test_calls_over_the_limit_are_told_to_come_back(world: OpenWorld) -> None:
    async with world(RequestLimits(calls=1)) as w, anyio.create_task_group() as tasks:
        tasks.start_soon(w.client.wait, Ping())
        await w.echo.begun.wait()
        with pytest.raises(Retry) as caught:
            await w.client.say(Ping())
        assert caught.value.code == "rpc.busy"
        assert caught.value.after == Duration.of(seconds=1)
        w.echo.go.set()


async def test_streams_have_a_limit_of_their_own(world: OpenWorld) -> None:
    async with world(RequestLimits(streams=1)) as w:
        stream = w.client.watch(Ping())
        await anext(stream)
        with pytest.raises(Retry) as caught:
            await anext(w.client.watch(Ping()))
        assert caught.value.code == "rpc.busy"
        assert (await w.client.say(Ping(text="calls go on"))).text
        w.echo.go.set()
        assert (await anext(stream)).text == "last"


async def test_draining_sends_streams_away_and_lets_calls_finish(world: OpenWorld) -> None:
    async with world() as w:
        answers: list[str] = []
        stream = w.client.watch(Ping())
        await anext(stream)

        async def call() -> None:
            answers.append((await w.client.wait(Ping(text="finished"))).text)

        async with anyio.create_task_group() as tasks:
            await w.echo.begun.wait()
            w.echo.begun = anyio.Event()
            tasks.start_soon(call)
            await w.echo.begun.wait()
            tasks.start_soon(w.app.drain, Duration.of(seconds=20))
            with pytest.raises(Retry) as caught:
                await anext(stream)
            assert caught.value.code == "rpc.draining"
            with pytest.raises(Retry) as caught:
                await w.client.say(Ping())
            assert caught.value.code == "rpc.draining"
            w.echo.go.set()
        assert answers == ["finished"]


async def test_draining_ends_calls_that_outlast_the_grace(world: OpenWorld) -> None:
    async with world() as w, anyio.create_task_group() as tasks:

        async def call() -> None:
            with pytest.raises(Retry) as caught:
                await w.client.wait(Ping())
            assert caught.value.code == "rpc.draining"

        tasks.start_soon(call)
        await w.echo.begun.wait()
        await w.app.drain(Duration.of(ms=20))
        assert w.echo.cancelled.is_set()


async def test_no_error_and_no_name_gives_the_token_away(
    world: OpenWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    async with world() as w:
        w.echo.error = RuntimeError("inside")
        said = repr(w.channel) + repr(w.app.authenticator)
        for call in (w.client.fail(Ping()), w.client_with(TOKEN + "x").say(Ping())):
            with pytest.raises(Error) as caught:
                await call
            said += repr(caught.value) + caught.value.hint + repr(caught.value.__cause__)
    said += caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    assert TOKEN not in said


async def test_no_handler_sees_the_token(world: OpenWorld) -> None:
    async with world() as w:
        await w.client.say(Ping(), headers={"x-kept": "yes"})
        assert w.echo.headers["x-kept"] == "yes"
        assert "authorization" not in w.echo.headers


async def test_a_served_request_leaves_nothing_to_the_garbage_collector(world: OpenWorld) -> None:
    async with world() as w:
        gc.collect()
        before = sum(type(found) is CallContext for found in gc.get_objects())
        gc.disable()
        try:
            for _ in range(5):
                await w.client.say(Ping())
                assert [pong.count async for pong in w.client.watch(Ping(count=1))] == [0]
            await anyio.lowlevel.checkpoint()
            kept = sum(type(found) is CallContext for found in gc.get_objects())
            # The one served last may still be on some frame.
            assert kept <= before + 1
        finally:
            gc.enable()
