"""The probe of a real machine, with NVIDIA's own binding over a stand-in for the driver's library."""

import asyncio
import ctypes
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Denied, Duration, Terminal
from neorion.keel.clock import SystemClock
from neorion.navarch.adapters.probes.kmsg import KernelLog, parse
from neorion.navarch.adapters.probes.machine import MachineProbe, Places
from neorion.navarch.model import EventKind, HealthEvent
from tests.navarch.nvml.stand_in import Machine

pytestmark = [pytest.mark.anyio, pytest.mark.needs("gcc")]
OFTEN = Duration.of(ms=20)


class Watched(Machine):
    """A machine, and the probe that looks at it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.probe = MachineProbe(
            Places(folder, folder / "kmsg", folder / "boot_id", folder / "infiniband"), SystemClock()
        )


@pytest.fixture
def machine(nvml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Watched]:
    # Found by its name from now on, also by the binding.
    ctypes.CDLL(str(nvml))
    monkeypatch.setenv("NVML_STAND_IN", str(tmp_path))
    made = Watched(tmp_path)
    yield made
    made.probe._nvml.close()
    made.close()


@asynccontextmanager
async def watched(machine: Watched) -> AsyncGenerator[asyncio.Queue[HealthEvent]]:
    events: asyncio.Queue[HealthEvent] = asyncio.Queue()
    await machine.probe.gpus()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(machine.probe.watch, events.put_nowait, OFTEN)
        yield events
        tasks.cancel_scope.cancel()


async def test_the_gpus_of_the_driver_are_seen(machine: Watched):
    gpus = await machine.probe.gpus()
    assert [gpu.uuid for gpu in gpus] == [f"GPU-stand-in-{index}" for index in range(8)]
    assert (gpus[0].temperature, gpus[0].power, gpus[0].utilisation) == (45.0, 300.0, 50.0)
    machine.say("3.error 15")
    assert [gpu.index for gpu in await machine.probe.gpus()] == [0, 1, 2, 4, 5, 6, 7]


async def test_an_xid_of_the_driver_is_told_and_its_twin_in_the_kernels_log_is_not(machine: Watched):
    async with watched(machine) as events:
        machine.xid(3, 79)
        event = await events.get()
        assert (event.kind, event.gpu, event.xid) == (EventKind.XID, 3, 79)
        machine.write(1, "NVRM: Xid (PCI:0000:13:00): 79, GPU has fallen off the bus.")
        machine.write(2, "NVRM: Xid (PCI:0000:14:00): 48, DBE")
        event = await events.get()
        assert (event.gpu, event.xid) == (4, 48)


@pytest.mark.parametrize(
    ("fact", "kind", "metrics"),
    [
        ("2.rows_failure 1", EventKind.ROW_REMAP, {"failure": 1.0}),
        ("2.rows_pending 1", EventKind.ROW_REMAP, {"pending": 1.0}),
        ("2.temperature 92", EventKind.THERMAL, {"margin": -2.0}),
        ("2.slowed_by 64", EventKind.THERMAL, {"margin": 0.0}),
        ("2.slowed_by 128", EventKind.POWER, {"slowed_by": 128.0}),
        ("2.links_down 3", EventKind.NVLINK, {"down": 2.0}),
        ("2.pcie_width 8", EventKind.PCIE, {"width": 8.0, "expected": 16.0}),
        ("2.pcie_gen 3", EventKind.PCIE, {"generation": 3.0, "expected": 5.0}),
        ("2.recovery_action 4", EventKind.RECOVERY_ACTION, {"action": 4.0}),
        ("2.error 16", EventKind.RECOVERY_ACTION, {"action": 1.0}),
        ("driver 9", EventKind.DRIVER, {"answers": 0.0}),
    ],
)
async def test_what_is_wrong_is_told_once_and_its_end_too(
    machine: Watched, fact: str, kind: EventKind, metrics: dict[str, float]
):
    async with watched(machine) as events:
        machine.say(fact)
        event = await events.get()
        assert (event.kind, event.metrics) == (kind, metrics)
        machine.say()
        event = await events.get()
        assert (event.kind, event.metrics) == (kind, {"cleared": 1.0})


async def test_a_treatment_that_is_not_allowed_is_refused(machine: Watched):
    with pytest.raises(Denied) as refused:
        await machine.probe.treat(Remedy.REBOOT, -1)
    assert refused.value.code == "agent.not_allowed"


def test_the_kernels_log_is_read_whatever_it_holds():
    text = (
        "6,1,5000000,-;NVRM: Xid (PCI:0000:3b:00): 13, pid=7\n SUBSYSTEM=pci\nnonsense\n6,2,x,-;NVRM: Xid\n"
    )
    (entry,) = parse(text)
    assert (entry.sequence, entry.seconds, entry.code, entry.bus) == (1, 5.0, 13, "0000:3b:00")


async def test_a_log_that_ends_is_refused_instead_of_read_for_ever(tmp_path: Path):
    (tmp_path / "boot_id").write_text("one\n")
    (tmp_path / "kmsg").touch()
    log = KernelLog(tmp_path / "kmsg", tmp_path / "boot_id", tmp_path / "memory", SystemClock())
    with pytest.raises(Terminal) as refused, anyio.fail_after(5):
        await anext(log.entries())
    assert refused.value.code == "probe.kernel_log_ended"
