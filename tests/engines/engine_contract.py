"""The promises of a runtime whose tasks run in containers of this machine. An engine joins by its name and its socket."""

import os
import pickle
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from neorion.iris.adapters.runtimes.container.engine import ContainerEngine
from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress
from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime
from neorion.iris.adapters.runtimes.container.settings import EngineName, EngineSettings, HostMount
from neorion.iris.adapters.runtimes.machine_engines import MachineEngine, open_engine, remove_containers
from neorion.iris.adapters.runtimes.process import result_file
from neorion.iris.model import Resources
from neorion.iris.ports import AttemptSpec, ExitKind, Phase, Runtime
from neorion.iris.testing.runtime_waits import ended, logged
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from tests.contracts.runtime import IN_PROCESSES, LONG, Rig, RuntimeContract, log_of
from tests.engines.image_archive import BARE_IMAGE, PLACES, ROOT, TASK_IMAGE, USER_IMAGE
from tests.engines.private_engine import PrivateEngine

MOUNTS = tuple(HostMount(Path(path), PurePosixPath(path), read_only=True) for path in PLACES)
MEMORY = 256 << 20


@dataclass(frozen=True)
class EngineRig(Rig):
    """A rig whose engine can be asked too."""

    settings: EngineSettings

    @classmethod
    def of(cls, engine: EngineName, private: PrivateEngine, root: Path) -> "EngineRig":
        # As a worker in `root` would have it.
        settings = EngineSettings(root / "containers", engine, private.socket, TASK_IMAGE, MOUNTS)
        return cls(lambda: opened(settings), IN_PROCESSES, root, settings)

    def shell(self, script: str) -> AttemptSpec:
        return self.command(("sh", "-c", script))


@asynccontextmanager
async def opened(settings: EngineSettings) -> AsyncGenerator[Runtime]:
    clock = SystemClock()
    async with (
        open_engine(settings, clock) as engine,
        ContainerRuntime(settings.folder, engine, RunnerAddress(), clock, system_rng()) as runtime,
    ):
        yield runtime


def live(path: str) -> None:
    """The life of a worker that is to be killed."""
    settings, order = pickle.loads(Path(path).read_bytes())  # noqa: S301 -- of the test

    async def main() -> None:
        async with opened(settings) as runtime:
            await runtime.renew(LONG)
            await runtime.start(order)
            await logged(runtime, order.attempt, "ready")
            print("ready", flush=True)  # noqa: T201 -- the test waits for it
            await anyio.sleep_forever()

    anyio.run(main)


async def is_empty(engine: ContainerEngine) -> None:
    """Waits until the worker has no container."""
    async with aclosing(engine.changes()) as changes:
        left = {status.attempt for status in await anext(changes)}
        while left:
            left -= {status.attempt for status in await anext(changes) if status.state == "gone"}


class EngineContract(RuntimeContract):
    @pytest.fixture
    async def engine(self, rig: EngineRig) -> AsyncGenerator[MachineEngine]:
        async with open_engine(rig.settings, SystemClock()) as engine:
            yield engine

    @pytest.fixture(autouse=True)
    async def _no_container_is_left(self, rig: EngineRig) -> AsyncGenerator[None]:
        yield
        await remove_containers(rig.root, SystemClock())

    async def test_memory_that_was_not_asked_for_ends_an_attempt(self, rig: EngineRig, runtime: Runtime):
        order = replace(rig.call(lambda: len(bytearray(1 << 30))), resources=Resources(100, MEMORY))
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert (end.kind, end.message) == (
            ExitKind.OUT_OF_MEMORY,
            "It used more memory than it asked for.",
        )

    async def test_a_task_sees_its_image_and_mounts_and_nothing_else(self, rig: EngineRig, runtime: Runtime):
        script = f"ls -d {ROOT} {rig.root}; touch {ROOT}/x; grep CapEff /proc/self/status; ls /proc | grep -c '^[0-9]'"
        order = rig.shell(f"({script}) 2>&1")
        await runtime.start(order)
        await ended(runtime, order.attempt)
        lines = log_of(runtime, order).splitlines()
        assert lines[0].endswith(f"{rig.root}: No such file or directory")
        assert lines[1] == str(ROOT)
        assert "Read-only file system" in lines[2]
        assert lines[3].split() == ["CapEff:", "0000000000000000"]
        # Its own processes, the runner's and the fork server's.
        assert int(lines[4]) < 12

    async def test_a_container_that_others_remove_is_lost(
        self, rig: EngineRig, runtime: Runtime, engine: MachineEngine
    ):
        order = rig.command(rig.words.waits)
        await runtime.start(order)
        await logged(runtime, order.attempt, "ready")
        await engine.remove(order.attempt, Duration(0))
        assert (await ended(runtime, order.attempt)).kind is ExitKind.LOST

    async def test_what_a_killed_worker_started_is_found_by_the_next(self, rig: EngineRig):
        order = rig.shell("trap 'echo stopped; exit' TERM; echo ready; while :; do sleep 0.1; done")
        given = rig.root / "given"
        given.write_bytes(pickle.dumps((rig.settings, order)))
        code = f"from {__name__} import live; live({str(given)!r})"
        async with await anyio.open_process([sys.executable, "-c", code], cwd=ROOT) as worker:
            assert worker.stdout is not None
            assert await BufferedByteReceiveStream(worker.stdout).receive_until(b"\n", 100) == b"ready"
            worker.send_signal(signal.SIGKILL)
        async with rig.life() as second:
            (found,) = await second.seen()
            assert (found.attempt, found.phase) == (order.attempt, Phase.RUNNING)
            await second.stop(order.attempt, LONG)
            assert (await ended(second, order.attempt)).kind is ExitKind.STOPPED
            # Written by the task that the killed worker started, and by no other.
            lines = log_of(second, order).splitlines()
            assert (lines[0], lines[-1]) == ("ready", "stopped")

    async def test_nothing_is_left_of_what_has_ended(
        self, rig: EngineRig, runtime: Runtime, engine: MachineEngine
    ):
        order = rig.command(rig.words.exits(0))
        await runtime.start(order)
        await ended(runtime, order.attempt)
        await runtime.forget(order.attempt)
        with anyio.fail_after(30):
            await is_empty(engine)
        assert [*(rig.settings.folder / "mounts").iterdir()] == []

    async def test_nothing_is_left_of_a_worker_that_does_not_come_back(
        self, rig: EngineRig, engine: MachineEngine
    ):
        order = rig.command(rig.words.waits)
        async with rig.life() as runtime:
            await runtime.renew(LONG)
            await runtime.start(order)
            await logged(runtime, order.attempt, "ready")
        await remove_containers(rig.root, SystemClock())
        async with aclosing(engine.changes()) as changes:
            assert await anext(changes) == []

    async def test_an_image_may_have_a_user_without_rights(self, rig: EngineRig):
        order = rig.call(lambda: (os.getuid(), os.getgid()))
        async with opened(replace(rig.settings, image=USER_IMAGE)) as runtime:
            await runtime.renew(LONG)
            await runtime.start(order)
            end = await ended(runtime, order.attempt)
        assert end.result is not None
        assert result_file.load(end.result) == (65534, 65534)

    async def test_an_image_without_python_is_named(self, rig: EngineRig):
        order = rig.command(rig.words.exits(0))
        async with opened(replace(rig.settings, image=BARE_IMAGE)) as runtime:
            await runtime.renew(LONG)
            await runtime.start(order)
            end = await ended(runtime, order.attempt)
        assert end.kind is ExitKind.NOT_STARTED
        assert '"python": executable file not found' in end.message
