"""The probe of a real machine, with NVIDIA's own binding over a stand-in for the driver's library."""

import asyncio
import ctypes
import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Denied, Duration, Retry, Terminal
from neorion.keel.clock import SystemClock
from neorion.navarch.adapters.probes import gpu_reset
from neorion.navarch.adapters.probes import host as probes_machine
from neorion.navarch.adapters.probes.host import HostPaths, HostProbe
from neorion.navarch.adapters.probes.kmsg import KernelLog, parse
from neorion.navarch.model import EventKind, HealthEvent
from tests.navarch.nvml.stand_in import Machine

pytestmark = [pytest.mark.anyio, pytest.mark.needs("gcc")]
OFTEN = Duration.of(ms=20)


class Watched(Machine):
    """A machine, and the probe that looks at it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.probe = HostProbe(
            HostPaths(folder, folder / "kmsg", folder / "boot_id", folder / "infiniband"), SystemClock()
        )

    def allow(self, remedy: Remedy) -> HostProbe:
        """The same probe, to which this is allowed."""
        self.probe._allowed = frozenset({remedy})
        return self.probe


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


async def looked(machine: Watched, events: asyncio.Queue[HealthEvent]) -> None:
    """Every GPU was looked at: what is counted from now on is news."""
    machine.say("0.temperature 92")
    assert (await events.get()).kind is EventKind.THERMAL


async def test_memory_errors_are_told_as_they_are_counted(machine: Watched):
    async with watched(machine) as events:
        await looked(machine, events)
        machine.say("0.temperature 92", "2.ecc_corrected 7")
        event = await events.get()
        assert (event.kind, event.gpu, event.metrics) == (EventKind.ECC_SINGLE_BIT, 2, {"count": 7.0})
        machine.say("0.temperature 92", "2.ecc_corrected 7", "2.ecc_uncorrected 1")
        event = await events.get()
        assert (event.kind, event.gpu, event.metrics) == (EventKind.ECC_DOUBLE_BIT, 2, {"count": 1.0})
        # A reset set them back: what is there now came after it.
        machine.say("0.temperature 92", "2.ecc_corrected 2", "2.ecc_uncorrected 1")
        event = await events.get()
        assert (event.kind, event.metrics) == (EventKind.ECC_SINGLE_BIT, {"count": 2.0})


async def test_fatal_errors_of_a_switch_are_told_and_others_are_not(machine: Watched):
    async with watched(machine) as events:
        machine.write(1, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress")
        machine.write(2, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up")
        event = await events.get()
        assert (event.kind, event.gpu, event.metrics) == (EventKind.NVLINK, -1, {"sxid": 20034.0})
        assert event.message == "Link 30 LTSSM Fault Up"


async def test_the_fabrics_counters_are_watched(machine: Watched):
    counter = machine.folder / "infiniband" / "mlx5_0" / "ports" / "1" / "counters" / "link_downed"
    counter.parent.mkdir(parents=True)
    counter.write_text("0\n")
    async with watched(machine) as events:
        await looked(machine, events)
        counter.write_text("1\n")
        event = await events.get()
        assert (event.kind, event.metrics) == (EventKind.INFINIBAND, {"fatal": 1.0, "link_downed": 1.0})


async def test_a_library_that_does_not_return_is_told_and_waited_for(
    machine: Watched, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(probes_machine, "ANSWER_S", 2.0)
    async with watched(machine) as events:
        await looked(machine, events)
        machine.say("hangs 1")
        event = await events.get()
        assert (event.kind, event.message) == (EventKind.DRIVER, "NVML does not return from a call.")
        with pytest.raises(Retry):
            await machine.probe.gpus()
        machine.say()
        seen = {(await events.get()).kind for _ in range(2)}
        assert seen == {EventKind.DRIVER, EventKind.THERMAL}


def program(folder: Path, name: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the machine that does as it is told here."""
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


async def test_a_gpu_is_reset_by_the_drivers_own_program(machine: Watched, monkeypatch: pytest.MonkeyPatch):
    program(machine.folder, "nvidia-smi", f'echo "$@" > {machine.folder}/asked', monkeypatch)
    probe = machine.allow(Remedy.RESET_GPU)
    await probe.gpus()
    await probe.treat(Remedy.RESET_GPU, 3)
    assert (machine.folder / "asked").read_text() == "--gpu-reset -i 3\n"
    # Whoever holds a GPU keeps it from being reset; afterwards it is looked at again.
    assert len(await probe.gpus()) == 8


async def test_the_machine_is_rebooted_by_its_own_program(machine: Watched, monkeypatch: pytest.MonkeyPatch):
    program(machine.folder, "systemctl", f'echo "$@" > {machine.folder}/asked', monkeypatch)
    await machine.allow(Remedy.REBOOT).treat(Remedy.REBOOT, -1)
    assert (machine.folder / "asked").read_text() == "reboot\n"


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("echo GPU 3 is in use; exit 15", "agent.treatment_failed", "ended with 15: GPU 3 is in use"),
        ("exec sleep 60", "agent.treatment_hangs", "did not end within"),
    ],
)
async def test_a_reset_that_fails_says_why(
    machine: Watched, monkeypatch: pytest.MonkeyPatch, body: str, code: str, said: str
):
    monkeypatch.setattr(gpu_reset, "PATIENCE_S", 0.5)
    program(machine.folder, "nvidia-smi", body, monkeypatch)
    with pytest.raises(Terminal) as failed:
        await machine.allow(Remedy.RESET_GPU).treat(Remedy.RESET_GPU, 3)
    assert failed.value.code == code
    assert said in failed.value.sentence


async def test_without_the_drivers_program_nothing_is_reset(
    machine: Watched, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(machine.folder))
    with pytest.raises(Terminal) as refused:
        await machine.allow(Remedy.RESET_GPU).treat(Remedy.RESET_GPU, 3)
    assert refused.value.code == "agent.no_program"


async def test_a_machine_without_the_library_says_so_and_nothing_stands_in_for_it():
    script = (
        "from neorion.keel.base import Retry\n"
        "from neorion.navarch.adapters.probes.nvml import Nvml\n"
        "try:\n    Nvml().gpus()\nexcept Retry as error:\n    print(error.code)\n"
    )
    done = await anyio.run_process([sys.executable, "-c", script], env={"PATH": os.environ["PATH"]})
    assert done.stdout == b"probe.nvml\n"


async def test_each_line_of_the_kernels_log_is_told_once_over_the_lives_of_the_agent(machine: Watched):
    log = KernelLog(
        machine.folder / "kmsg", machine.folder / "boot_id", machine.folder / "memory", SystemClock()
    )
    for sequence in (1, 2):
        machine.write(sequence, f"NVRM: Xid (PCI:0000:3b:00): {sequence}, pid=7")
    first = log.entries()
    assert [(await anext(first)).code for _ in range(2)] == [1, 2]
    await first.aclose()
    # The log is read from its beginning again, with one line more. What the agent did not finish telling is told again.
    for sequence in (1, 2, 3):
        machine.write(sequence, f"NVRM: Xid (PCI:0000:3b:00): {sequence}, pid=7")
    second = log.entries()
    assert [(await anext(second)).code for _ in range(2)] == [2, 3]
    await second.aclose()


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
    with pytest.raises(Terminal) as refused, anyio.fail_after(30):
        await anext(log.entries())
    assert refused.value.code == "probe.kernel_log_ended"
