"""The probe of a real machine: the driver's library, the kernel's log and the fabric's counters, watched together."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import anyio
from anyio import to_thread

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration, Error, Instant, Retry
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger
from neorion.navarch.adapters.probes import gpu_reset, infiniband
from neorion.navarch.adapters.probes.gpu_reading import (
    GpuReading,
    HealthSignal,
    counter_signals,
    expected_links,
    state_signals,
)
from neorion.navarch.adapters.probes.kmsg import KernelLog, XidRecord
from neorion.navarch.adapters.probes.nvml import Nvml
from neorion.navarch.adapters.probes.signal_dedup import SignalDeduplicator
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.ports import Gpu

log = logger(__name__)
T = TypeVar("T")

# The library answers in milliseconds; with a GPU that hangs it may not come back at all.
ANSWER_S: Final = 30.0
# One thread speaks to the library: heartbeats wait for at most this long while it waits for events.
WAIT_MS: Final = 250
# The driver tells of one XID twice, through its library and in the kernel's log, within moments.
TWIN_S: Final = 10.0
# A machine that has just booted may still be loading its driver.
DRIVER_COMES: Final = Duration.of(minutes=15)
_PAUSE: Final = Duration.of(seconds=5)
# What the control plane takes of a message.
TEXT_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class HostPaths:
    """Where to look. `memory` is a folder that outlives the agent."""

    memory: Path
    kernel_log: Path = Path("/dev/kmsg")
    boot_id: Path = Path("/proc/sys/kernel/random/boot_id")
    infiniband: Path = Path("/sys/class/infiniband")


class HostProbe:
    """Everything the agent knows of its machine. What it may do to it is `allowed`."""

    def __init__(self, places: HostPaths, clock: Clock, allowed: frozenset[Remedy] = frozenset()) -> None:
        self._places = places
        self._clock = clock
        self._allowed = allowed
        self._nvml = Nvml()
        # Both bound the same thing: one question at a time, and none while an old one has not returned.
        self._turn = anyio.Lock()
        self._inside = False
        self._watchlist = SignalDeduplicator()
        self._fabric = infiniband.InfinibandCounters()
        self._before: dict[str, GpuReading] = {}
        self._links: dict[str, int] = {}
        self._buses: dict[str, int] = {}
        self._xids: dict[tuple[int, int], tuple[str, float]] = {}
        self._read_now = asyncio.Event()

    async def gpus(self) -> Sequence[Gpu]:
        return await self._ask(self._nvml.gpus)

    async def watch(self, tell: Callable[[HealthEvent], None], every: Duration) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_driver, tell)
            tasks.start_soon(self._watch_kernel, tell)
            while True:
                self._read_now.clear()
                for sign in await self._read_signals():
                    tell(self._event(sign, self._clock.now()))
                with anyio.move_on_after(every.seconds):
                    await self._read_now.wait()

    async def self_test(self) -> bool:
        """Every GPU answers, and none of them asks to be treated."""
        by = self._clock.monotonic() + DRIVER_COMES.seconds
        while True:
            try:
                found = await self._ask(self._nvml.readings)
            except Retry as error:
                if self._clock.monotonic() >= by:
                    log.failure("the self-test failed", error)
                    return False
                await self._clock.sleep(_PAUSE)
                continue
            return bool(found) and not any(one.recovery or one.rows_failure for one in found)

    async def treat(self, remedy: Remedy, gpu: int) -> None:
        gpu_reset.check_allowed(remedy, self._allowed)
        if remedy is Remedy.RESET_GPU:
            async with self._turn:
                if not self._inside:
                    self._nvml.close()
                await gpu_reset.reset_gpu(gpu)
        else:
            await gpu_reset.reboot()

    async def _watch_driver(self, tell: Callable[[HealthEvent], None]) -> None:
        while True:
            try:
                found = await self._ask(lambda: self._nvml.wait(WAIT_MS))
            except Retry:
                # The looks tell of it; here it is only waited for.
                await self._clock.sleep(_PAUSE)
                continue
            if found is not None:
                gpu, code = found
                self._xid(tell, "nvml", HealthEvent(self._clock.now(), EventKind.XID, gpu, xid=code))

    async def _watch_kernel(self, tell: Callable[[HealthEvent], None]) -> None:
        places = self._places
        kernel = KernelLog(places.kernel_log, places.boot_id, places.memory / "kernel-log.json", self._clock)
        try:
            async for entry in kernel.entries():
                at = self._moment(entry)
                if entry.switch:
                    sign = HealthSignal(
                        EventKind.NVLINK, message=entry.message, metrics={"sxid": float(entry.code)}
                    )
                    tell(self._event(sign, at))
                    continue
                gpu = self._buses.get(entry.bus, -1)
                message = f"PCI {entry.bus}: {entry.message}"[:TEXT_MAX]
                self._xid(
                    tell, "kernel", HealthEvent(at, EventKind.XID, gpu, xid=entry.code, message=message)
                )
        except Error as error:
            log.failure("XIDs are heard from the driver alone", error)

    def _xid(self, tell: Callable[[HealthEvent], None], source: str, event: HealthEvent) -> None:
        """Reports an XID once, from the source that saw it first, and requests another reading of the GPUs."""
        now = self._clock.monotonic()
        self._xids = {key: told for key, told in self._xids.items() if now - told[1] < TWIN_S}
        first, _ = self._xids.get((event.gpu, event.xid), (source, now))
        if first == source:
            self._xids[event.gpu, event.xid] = (source, now)
            tell(event)
        self._read_now.set()

    async def _read_signals(self) -> list[HealthSignal]:
        at = self._clock.monotonic()
        counted, standing = self._fabric.update(infiniband.read(self._places.infiniband), at)
        try:
            readings = await self._ask(self._nvml.readings)
        except Retry as error:
            # Of the GPUs nothing is known now, so nothing of them has ended either.
            silent = HealthSignal(
                EventKind.DRIVER, grade=error.code, message=error.sentence, metrics={"answers": 0.0}
            )
            known = [one for one in self._watchlist.standing if one.gpu >= 0]
            return [*counted, *self._watchlist.update([*standing, silent, *known], at)]
        standing += self._judge(readings)
        for one in readings:
            if one.gpu.uuid in self._before:
                counted += counter_signals(self._before[one.gpu.uuid], one)
        self._before = {one.gpu.uuid: one for one in readings}
        return [*counted, *self._watchlist.update(standing, at)]

    def _judge(self, readings: Sequence[GpuReading]) -> Iterator[HealthSignal]:
        due = expected_links(readings, self._links)
        for one in readings:
            self._links[one.gpu.uuid] = max(one.links, self._links.get(one.gpu.uuid, 0))
            self._buses[one.bus] = one.gpu.index
            yield from state_signals(one, due[one.gpu.index])

    async def _ask(self, question: Callable[[], T]) -> T:
        async with self._turn:
            if self._inside:
                raise _hangs()
            self._inside = True
            try:
                with anyio.fail_after(ANSWER_S):
                    return await to_thread.run_sync(self._enter, question, abandon_on_cancel=True)
            except TimeoutError:
                raise _hangs() from None

    def _enter(self, question: Callable[[], T]) -> T:
        try:
            return question()
        finally:
            self._inside = False

    def _moment(self, entry: XidRecord) -> Instant:
        """The kernel counts from boot, as the monotonic clock does."""
        ago = max(0.0, self._clock.monotonic() - entry.seconds)
        return Instant(self._clock.now().ns - round(ago * 1e9))

    def _event(self, sign: HealthSignal, at: Instant) -> HealthEvent:
        return HealthEvent(
            at, sign.kind, sign.gpu, sign.uuid, message=sign.message[:TEXT_MAX], metrics=sign.metrics
        )


def _hangs() -> Retry:
    return Retry(
        "probe.hangs",
        "NVML does not return from a call.",
        hint="Look in the kernel's log for the GPU that hangs, and reboot the machine if it stays so.",
    )
