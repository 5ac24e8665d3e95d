from functools import partial

import anyio
import pytest

from neorion.keel.base import Conflict, Invalid, NotFound, Retry
from neorion.keel.sim import Host, LinkConditions, Stream, World, simulate
from neorion.keel.sim.network import MAILBOX_MAX


async def echo(caller: str, request: object) -> object:
    return caller, request


def serving(world: World, answer: object = echo) -> Host:
    async def main(host: Host) -> None:
        with world.network.serve(f"{host.name}:echo", answer):  # pyright: ignore[reportArgumentType] -- tests pass functions
            await anyio.sleep_forever()

    host = world.host("server")
    host.start(main)
    return host


async def settled(world: World, *names: str) -> None:
    """Starts idle hosts and lets those that serve begin."""
    for name in names:
        world.host(name)
    await world.sleep(0.001)


def test_a_call_is_answered_and_takes_time():
    async def scenario(world: World) -> None:
        serving(world)
        await settled(world)
        before = world.clock.monotonic()
        assert await world.network.call("server:echo", "hello") == ("scenario", "hello")
        assert 0.0004 <= world.clock.monotonic() - before <= 0.004

    for seed in range(20):
        simulate(scenario, seed).check()


def test_the_caller_is_the_host_whose_code_runs():
    async def scenario(world: World) -> object:
        serving(world)
        heard = list[object]()

        async def main(_host: Host) -> None:
            heard.append(await world.network.call("server:echo", 1))

        await settled(world)
        world.host("client").start(main)
        await world.sleep(1)
        return heard

    assert simulate(scenario, 1).check() == [("client", 1)]


def test_an_error_of_the_server_travels_and_a_bug_of_the_server_fails_the_run():
    async def missing(_caller: str, _request: object) -> object:
        raise NotFound("test.missing", "No such thing.")

    async def buggy(_caller: str, _request: object) -> object:
        raise KeyError("bug")

    async def scenario(world: World, answer: object) -> None:
        serving(world, answer)
        await settled(world)
        with pytest.raises(NotFound, match="No such thing"):
            await world.network.call("server:echo", 1)

    simulate(partial(scenario, answer=missing), 1).check()
    assert isinstance(simulate(partial(scenario, answer=buggy), 1).error, KeyError)


@pytest.mark.parametrize("verb", ["call", "connect"])
def test_nobody_at_an_address_is_refused(verb: str):
    async def scenario(world: World) -> None:
        server = serving(world)
        await settled(world)
        server.crash()
        for address in ("server:echo", "server:other", "nowhere:echo"):
            with pytest.raises(Retry) as caught:
                await (world.network.call(address, 1) if verb == "call" else world.network.connect(address))
            assert caught.value.code == "sim.refused"

    simulate(scenario, 1).check()


def test_a_crash_of_the_server_breaks_the_call_and_of_the_client_loses_the_answer():
    async def scenario(world: World) -> None:
        async def slow(_caller: str, _request: object) -> object:
            await world.sleep(5)
            return "done"

        server = serving(world, slow)
        await settled(world)
        world.loop.call_later(1, server.crash)
        with pytest.raises(Retry) as caught:
            await world.network.call("server:echo", 1)
        assert caught.value.code == "sim.reset"
        server.restart()

        heard = list[object]()

        async def main(_host: Host) -> None:
            heard.append(await world.network.call("server:echo", 1))

        client = world.host("client")
        client.start(main)
        await world.sleep(1)
        client.crash()
        await world.sleep(10)
        assert heard == []

    simulate(scenario, 1).check()


def test_a_partition_holds_calls_back_until_it_heals():
    async def scenario(world: World) -> None:
        serving(world)
        await settled(world)
        world.links.partition(["scenario"], ["server"])
        with pytest.raises(TimeoutError), anyio.fail_after(60):
            await world.network.call("server:echo", 1)
        world.loop.call_later(10, world.links.heal)
        assert await world.network.call("server:echo", 2) == ("scenario", 2)
        assert world.clock.monotonic() > 70

    simulate(scenario, 1).check()


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_one_way_cut_lets_the_other_way_pass(lost: str):
    async def scenario(world: World) -> None:
        served = list[object]()

        async def count(_caller: str, request: object) -> object:
            served.append(request)
            return request

        serving(world, count)
        await settled(world)
        world.links.cut(*((["scenario"], ["server"]) if lost == "request" else (["server"], ["scenario"])))
        with anyio.move_on_after(5) as scope:
            await world.network.call("server:echo", 1)
        assert scope.cancelled_caught
        assert served == ([] if lost == "request" else [1])

    simulate(scenario, 1).check()


def test_a_reset_breaks_calls_under_way_but_the_work_goes_on():
    async def scenario(world: World) -> None:
        served = list[object]()

        async def slow(_caller: str, request: object) -> object:
            await world.sleep(5)
            served.append(request)
            return request

        serving(world, slow)
        await settled(world)
        world.loop.call_later(1, world.network.reset, "server", "scenario")
        with pytest.raises(Retry):
            await world.network.call("server:echo", 1)
        await world.sleep(10)
        assert served == [1]

    simulate(scenario, 1).check()


def test_a_paused_server_answers_when_it_is_resumed():
    async def scenario(world: World) -> None:
        server = serving(world)
        await settled(world)
        server.pause()
        world.loop.call_later(30, server.resume)
        assert await world.network.call("server:echo", 1) == ("scenario", 1)
        assert world.clock.monotonic() > 30

    simulate(scenario, 1).check()


def test_datagrams_are_lost_doubled_and_reordered_as_the_weather_says():
    async def scenario(world: World) -> list[int]:
        world.links.weather = LinkConditions(drop=0.2, duplicate=0.2)
        got = list[int]()
        with world.network.mailbox("here:box") as box:
            for number in range(1_000):
                world.network.send("here:box", number)
            with anyio.move_on_after(10):
                while True:
                    sender, message = await box.receive()
                    assert sender == "scenario"
                    got.append(message)
        return got

    got = simulate(scenario, 1).check()
    assert got is not None
    assert 700 < len(set(got)) < 900
    assert 100 < len(got) - len(set(got)) < 250
    assert got != sorted(got)


def test_a_datagram_at_a_cut_is_gone_and_a_full_mailbox_drops():
    async def scenario(world: World) -> None:
        with world.network.mailbox("here:box") as box:
            world.links.partition(["scenario"], ["here"])
            world.network.send("here:box", "lost")
            await world.sleep(1)
            world.links.heal()
            for number in range(MAILBOX_MAX + 10):
                world.network.send("here:box", number)
            await world.sleep(1)
            for _ in range(MAILBOX_MAX):
                assert (await box.receive())[1] != "lost"
            with anyio.move_on_after(1) as scope:
                await box.receive()
            assert scope.cancelled_caught

    simulate(scenario, 1).check()


def test_links_have_weather_of_their_own():
    async def scenario(world: World) -> None:
        serving(world)
        await settled(world)
        world.links.set("scenario", "server", LinkConditions(delay_s=(10, 11)))
        await world.network.call("server:echo", 1)
        assert 20 <= world.clock.monotonic() <= 23

    simulate(scenario, 1).check()


def test_calls_connections_and_datagrams_are_services_apart():
    async def scenario(world: World) -> None:
        async def attend(_stream: Stream) -> None:
            raise AssertionError("a call is no connection")

        with world.network.listen("here:one", attend), world.network.mailbox("here:one"):
            with pytest.raises(Retry, match="No service listens"):
                await world.network.call("here:one", 1)
            with world.network.serve("here:one", echo):
                assert await world.network.call("here:one", 1) == ("scenario", 1)

    simulate(scenario, 1).check()


def test_addresses_are_checked():
    async def scenario(world: World) -> None:
        with pytest.raises(Invalid):
            await world.network.call("no-service", 1)
        here = partial(world.network.serve, "here:echo", echo)
        with here(), pytest.raises(Conflict), here():
            pass
        with world.network.serve("here:echo", echo):
            assert await world.network.call("here:echo", 1)

        async def main(_host: Host) -> None:
            with pytest.raises(Invalid), world.network.serve("other:echo", echo):
                pass

        world.host("one").start(main)
        await world.sleep(1)
        with pytest.raises(Invalid):
            LinkConditions(delay_s=(2, 1))

    simulate(scenario, 1).check()
