from functools import partial

import anyio
import pytest

from neorion.keel.sim import Host, LinkConditions, Stream, World, simulate
from neorion.keel.sim.stream import WINDOW


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


async def read_all(stream: Stream, into: bytearray) -> None:
    async for chunk in stream:
        into += chunk


def test_a_stream_carries_bytes_in_order_both_ways_and_ends():
    async def upper(stream: Stream) -> None:
        async for chunk in stream:
            await stream.send(chunk.upper())

    async def scenario(world: World) -> None:
        with world.network.listen("here:upper", upper):
            stream = await world.network.connect("here:upper")
            assert stream.peer == "here"
            got = bytearray()
            async with anyio.create_task_group() as group, stream:
                group.start_soon(read_all, stream, got)
                for number in range(200):
                    await stream.send(f"line {number}\n".encode())
                await stream.send_eof()
                await world.sleep(1)
            assert got == b"".join(f"LINE {number}\n".encode() for number in range(200))
            with pytest.raises(anyio.ClosedResourceError):
                await stream.send(b"more")

    for seed in range(20):
        simulate(scenario, seed).check()


def test_writes_may_arrive_in_parts():
    async def scenario(world: World) -> list[int]:
        sizes = list[int]()

        async def note(stream: Stream) -> None:
            sizes.extend([len(chunk) async for chunk in stream])

        with world.network.listen("here:note", note):
            async with await world.network.connect("here:note") as stream:
                for _ in range(10):
                    await stream.send(b"0123456789")
                    await world.sleep(1)
            await world.sleep(1)
        return sizes

    sizes = simulate(scenario, 1).check()
    assert sizes is not None
    assert sum(sizes) == 100
    assert len(sizes) > 10


def test_a_reader_that_does_not_read_holds_the_writer_back():
    async def scenario(world: World) -> None:
        go = anyio.Event()
        got = bytearray()

        async def late(stream: Stream) -> None:
            await go.wait()
            await read_all(stream, got)

        with world.network.listen("here:late", late):
            stream = await world.network.connect("here:late")
            with anyio.move_on_after(5) as scope:
                await stream.send(bytes(10 * WINDOW))
            assert scope.cancelled_caught
            go.set()
            await world.sleep(1)
            assert len(got) == WINDOW
            await stream.send(bytes(10 * WINDOW))
            await stream.aclose()
            await world.sleep(1)
            assert len(got) == 11 * WINDOW

    simulate(scenario, 1).check()


@pytest.mark.parametrize("how", ["crash", "reset"])
def test_a_broken_connection_is_an_error_at_both_ends(how: str):
    async def scenario(world: World) -> None:
        ends = list[str]()

        async def attend(stream: Stream) -> None:
            try:
                await stream.receive()
            except anyio.BrokenResourceError:
                ends.append("server")

        async def main(host: Host) -> None:
            with world.network.listen(f"{host.name}:tcp", attend):
                await anyio.sleep_forever()

        server = world.host("server")
        server.start(main)
        await settled(world)
        stream = await world.network.connect("server:tcp")
        break_off = server.crash if how == "crash" else partial(world.network.reset, "scenario", "server")
        world.loop.call_later(1, break_off)
        with pytest.raises(anyio.BrokenResourceError):
            await stream.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await stream.send(b"x")
        await world.sleep(1)
        assert ends == ([] if how == "crash" else ["server"])

    simulate(scenario, 1).check()


def test_the_server_learns_that_its_client_crashed_or_gave_up_connecting():
    async def scenario(world: World) -> None:
        ends = list[str]()

        async def attend(stream: Stream) -> None:
            try:
                await stream.receive()
            except anyio.BrokenResourceError:
                ends.append("broken")

        async def main(_host: Host) -> None:
            stream = await world.network.connect("here:tcp")
            await stream.receive()

        client = world.host("client")
        with world.network.listen("here:tcp", attend):
            client.start(main)
            await world.sleep(1)
            client.crash()
            await world.sleep(1)
            assert ends == ["broken"]
            world.links.set("scenario", "here", LinkConditions(delay_s=(1, 1)))
            with anyio.move_on_after(1.5):
                await world.network.connect("here:tcp")
            await world.sleep(10)
            assert ends == ["broken", "broken"]

    simulate(scenario, 1).check()


def test_bytes_wait_at_a_partition_and_arrive_in_order_after_it():
    async def scenario(world: World) -> None:
        got = bytearray()

        async def attend(stream: Stream) -> None:
            await read_all(stream, got)

        with world.network.listen("here:tcp", attend):
            async with await world.network.connect("here:tcp") as stream:
                for number in range(30):
                    if number == 10:
                        world.links.partition(["scenario"], ["here"])
                    if number == 20:
                        assert len(got) <= 10
                        world.links.heal()
                    await stream.send(bytes([number]))
                    await world.sleep(0.001)
            await world.sleep(1)
        assert got == bytes(range(30))

    for seed in range(30):
        simulate(scenario, seed).check()


def test_that_the_reader_is_gone_is_not_known_through_a_partition():
    async def scenario(world: World) -> None:
        told = list[float]()

        async def talk(stream: Stream) -> None:
            try:
                while True:
                    await stream.send(b"tick")
                    await world.sleep(1)
            except anyio.BrokenResourceError:
                told.append(world.clock.monotonic())

        with world.network.listen("here:tcp", talk):
            stream = await world.network.connect("here:tcp")
            world.links.partition(["scenario"], ["here"])
            await stream.aclose()
            await world.sleep(60)
            assert told == []
            world.links.heal()
            await world.sleep(5)
            assert len(told) == 1

    simulate(scenario, 1).check()
