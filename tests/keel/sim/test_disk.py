import anyio
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.sim import Host, World, simulate


def crashed_contents(seed: int) -> tuple[bytes, bytes, bytes]:
    async def scenario(world: World) -> tuple[bytes, bytes, bytes]:
        async def main(host: Host) -> None:
            host.disk.append("log", b"synced;")
            host.disk.replace("head", b"old")
            await host.disk.sync("log")
            await host.disk.sync("head")
            host.disk.append("log", b"one;")
            host.disk.append("log", b"two;")
            host.disk.replace("head", b"older and longer")
            seen.append(host.disk.read("log"))
            await anyio.sleep_forever()

        seen = list[bytes]()
        host = world.host("one")
        host.start(main)
        await world.sleep(1)
        host.crash()
        return seen[0], host.disk.read("log"), host.disk.read("head")

    value = simulate(scenario, seed).check()
    assert value is not None
    return value


@given(st.integers(0, 100_000))
def test_a_crash_spares_what_was_synced_and_a_prefix_of_the_rest(seed: int):
    seen, log, head = crashed_contents(seed)
    assert seen == b"synced;one;two;"
    assert log.startswith(b"synced;")
    assert seen.startswith(log)
    assert head in {b"old", b"older and longer"}


def test_seeds_lose_nothing_some_and_tear():
    logs = {crashed_contents(seed)[1] for seed in range(200)}
    assert {b"synced;", b"synced;one;", b"synced;one;two;", b"synced;on"} <= logs
    pairs = {crashed_contents(seed)[1:] for seed in range(200)}
    assert (b"synced;", b"older and longer") in pairs, "files lose independently"


def test_a_crash_in_the_middle_of_a_sync_promises_nothing():
    async def scenario(world: World) -> bytes:
        async def main(host: Host) -> None:
            host.disk.replace("file", b"x")
            await host.disk.sync("file")

        host = world.host("one")
        host.start(main)
        await world.sleep(0.0001)
        host.crash()
        return host.disk.read("file")

    assert {simulate(scenario, seed).check() for seed in range(50)} == {b"", b"x"}
