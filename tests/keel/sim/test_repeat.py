"""The same seed in other processes, whose sets and dictionaries of objects are ordered otherwise."""

import subprocess
import sys
from pathlib import Path

import anyio

from neorion.keel.base import Duration, Id
from neorion.keel.clock import fault_point
from neorion.keel.sim import Crash, Host, LinkConditions, World, simulate


class NoteId(Id):
    prefix = "note"


async def busy(world: World) -> None:
    """A bit of everything: tasks, cancellation, datagrams, calls, streams, disks, faults, crashes, ids."""
    world.links.weather = LinkConditions(drop=0.1, duplicate=0.1)
    world.faults.sometimes("busy.*", 0.1, Crash(down=Duration.of(ms=50)), host="b")

    async def answer(caller: str, request: object) -> object:
        await fault_point("busy.answer")
        return caller, request

    async def serve(host: Host) -> None:
        with (
            world.network.serve(f"{host.name}:echo", answer),
            world.network.mailbox(f"{host.name}:box") as box,
        ):
            while True:
                _, message = await box.receive()
                host.disk.append("log", repr(message).encode())
                world.note(f"{host.ids.new(NoteId)} {len(host.disk.read('log'))}")
                if host.rng.random() < 0.5:
                    await host.disk.sync("log")

    for name in ("a", "b", "c"):
        world.host(name).start(serve)

    async def ask(name: str) -> None:
        for number in range(10):
            world.network.send(f"{name}:box", number)
            with anyio.move_on_after(world.rng.uniform(0, 0.1)):
                try:
                    world.note(f"{await world.network.call(f'{name}:echo', number)}")
                except Exception as error:  # noqa: BLE001 -- told in the trace, compared there
                    world.note(f"{type(error).__name__} {error}")

    async with anyio.create_task_group() as group:
        for name in ("a", "b", "c") * 3:
            group.start_soon(ask, name)
        group.start_soon(anyio.sleep_forever)
        await world.sleep(0.3)
        group.cancel_scope.cancel()


def digests() -> list[str]:
    outcomes = [simulate(busy, seed) for seed in range(5)]
    for outcome in outcomes:
        outcome.check()
    return [outcome.digest for outcome in outcomes]


def test_a_seed_gives_the_same_trace_in_processes_with_other_hash_seeds():
    here = digests()
    assert len(set(here)) == 5
    for hash_seed in ("0", "1", "4242"):
        told = subprocess.run(
            [sys.executable, __file__],
            env={"PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
        )
        assert told.stdout.split() == here


if __name__ == "__main__":
    sys.stdout.write("\n".join(digests()))
