"""A process runtime with a lease, orders for it, and its processes as the kernel sees them."""

import os
import pickle
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none
import pytest

from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import AttemptId, Command, Digest, FunctionCall, Resources, TaskEnvironment
from neorion.iris.ports import AttemptSpec
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds

# No test takes so long, however busy the machine; what a killed one leaves behind ends with it.
LEASE = Duration.of(minutes=10)


@dataclass(frozen=True)
class Orders:
    """Writes orders, and what they need on disk."""

    root: Path

    def command(self, *argv: str) -> AttemptSpec:
        return AttemptSpec(SystemIds().new(AttemptId), Command(argv), TaskEnvironment(), (), Resources())

    def shell(self, script: str) -> AttemptSpec:
        return self.command("sh", "-c", script)

    def program(self, function: Callable[..., object], *args: object) -> AttemptSpec:
        """The function as a program of its own: `python`, not the fork server's interpreter."""
        order = self.command()
        file = self.root / f"{order.attempt}.program"
        file.write_bytes(cloudpickle.dumps((function, args)))
        source = "import pickle, sys; function, args = pickle.load(open(sys.argv[1], 'rb')); function(*args)"
        return replace(order, entry=Command(("python", "-c", source, str(file))))

    def call(self, function: Callable[..., object], *args: object, pool: str = "") -> AttemptSpec:
        attempt = SystemIds().new(AttemptId)
        code, given = self.root / f"{attempt}.function", self.root / f"{attempt}.input"
        code.write_bytes(cloudpickle.dumps(function))
        given.write_bytes(pickle.dumps((args, {})))
        return AttemptSpec(
            attempt,
            FunctionCall(Digest("any")),
            TaskEnvironment(),
            (),
            Resources(),
            function=code,
            input=given,
            pool=pool,
        )


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


@pytest.fixture
async def root(tmp_path: Path) -> AsyncIterator[Path]:
    """The runtime's directory; when the test is over its lease is too, and with it every process."""
    yield tmp_path / "runtime"
    async with ProcessRuntime(tmp_path / "runtime", SystemClock()) as last:
        await last.renew(Duration(1))


@pytest.fixture
async def runtime(root: Path) -> AsyncIterator[ProcessRuntime]:
    async with ProcessRuntime(root, SystemClock()) as runtime:
        await runtime.renew(LEASE)
        yield runtime


def forkserver(root: Path) -> int:
    """The fork server of this directory; its parent is the guardian."""
    found = [
        int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _serves(path, root)
    ]
    guardian = next(pid for pid in found if _parent(pid) not in found)
    return next(pid for pid in found if _parent(pid) == guardian)


def _serves(process: Path, root: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.endswith(b".forkserver") for word in words) and os.fsencode(root) in words


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def gone(handle: int) -> None:
    """Waits for the end of the process behind a pidfd."""
    with anyio.fail_after(60):
        await anyio.wait_readable(handle)
    os.close(handle)
