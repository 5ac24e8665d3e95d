"""One slice: starts its machines, watches them, and ends them on request."""

import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace

from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.local.machine import Cleanup, Launch, LocalMachine, machines
from neorion.iris.adapters.platforms.local.pidfd import GatedProcess, PidfdProcess, spawn
from neorion.iris.adapters.platforms.local.process_tree import end_tree, members
from neorion.iris.adapters.platforms.local.slice_store import LocalSliceRecord, SliceStore
from neorion.iris.adapters.platforms.slice_watch import wait_at_most
from neorion.iris.model import SliceState
from neorion.iris.ports import SliceStatus
from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

# Enough of a worker's log to see why it ended.
_LAST_LOG_BYTES = 2048
_LAST_LOG_CHARS = 200


@dataclass(frozen=True, slots=True)
class PlatformContext:
    """Parts that all slices of one platform share."""

    clock: Clock
    folder: Path
    records: SliceStore
    launch: Launch
    cleanup: Cleanup
    variables: Mapping[str, str]
    grace: Duration
    publish: Callable[[SliceStatus], None]


class LocalSlice:
    """One slice. `run` returns when it is gone; everything else may be called at any time meanwhile."""

    def __init__(self, record: LocalSliceRecord, behaviour: FaultProfile, context: PlatformContext) -> None:
        self._record = record
        self._behaviour = behaviour
        self._context = context
        self._folder = context.folder / record.order.id
        self._machines = machines(record.order, self._folder)
        self._terminating = anyio.Event()
        self.gone = anyio.Event()
        self._processes: dict[str, PidfdProcess] = {}
        for machine, birth in zip(self._machines, record.births, strict=False):
            if (process := PidfdProcess.find(birth)) is not None:
                self._processes[machine.host] = process
        if record.doomed:
            self._terminating.set()

    @property
    def group(self) -> str:
        return self._record.order.group

    def seen(self) -> SliceStatus:
        record = self._record
        if record.doomed:
            state = SliceState.DELETING
        elif record.failure:
            state = SliceState.FAILED
        else:
            state = SliceState.BOOTSTRAPPING if record.births else SliceState.CREATING
        hosts = () if self.gone.is_set() else tuple(self._living())
        return SliceStatus(record.order.id, record.order.group, state, hosts, record.failure)

    def request_termination(self) -> None:
        if not self._terminating.is_set():
            self._record_change(replace(self._record, doomed=True))
            self._terminating.set()

    async def lose(self) -> None:
        """Kills one machine, as a power cut would. Its watch notices the loss as any other."""
        for machine, birth in zip(self._machines, self._record.births, strict=False):
            if machine.host in self._living():
                await run_sync(end_tree, machine, birth)
                return

    def close(self) -> None:
        for process in self._processes.values():
            process.close()

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._serve)
            await self._terminating.wait()
            group.cancel_scope.cancel()
        await self._end()

    async def _serve(self) -> None:
        record = self._record
        if not record.births and not record.failure:
            if record.stuck:
                await anyio.sleep_forever()
            await self._sleep_until(self._behaviour.boot_delay)
            self._start()
        async with anyio.create_task_group() as group:
            for machine in self._machines:
                if self._record.births or machine.host in self._processes:
                    group.start_soon(self._watch, machine)
            group.start_soon(self._inject_loss)

    async def _sleep_until(self, age: Duration) -> None:
        await self._context.clock.sleep(age - self._context.clock.now().since(self._record.created))

    def _start(self) -> None:
        """Starts all machines or none. All are recorded before the first is released: see `spawn`."""
        held: dict[str, GatedProcess] = {}
        try:
            with ExitStack() as undo:
                for machine in self._machines:
                    held[machine.host] = self._spawn(machine)
                    undo.callback(held[machine.host].abandon)
                births = tuple(each.process.birth for each in held.values())
                born = replace(self._record, births=births)
                self._context.records.save(born)
                undo.pop_all()
        except OSError as error:
            log.failure("a slice could not start", error, slice=self._record.order.id)
            self._processes = {host: each.process for host, each in held.items()}
            self._record_change(
                replace(self._record, failure=f"Its workers could not start: {error.strerror}.")
            )
            return
        for each in held.values():
            each.release(self._record.order.token)
        self._processes = {host: each.process for host, each in held.items()}
        self._record = born
        self._context.publish(self.seen())

    def _spawn(self, machine: LocalMachine) -> GatedProcess:
        machine.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name, value = machine.mark
        variables = {**self._context.variables, name: value}
        return spawn(self._context.launch(machine), variables, machine.log)

    async def _watch(self, machine: LocalMachine) -> None:
        process = self._processes.get(machine.host)
        how = await process.ended() if process is not None else "ended while the controller was down"
        # The first loss is the cause. Later losses may only follow from it.
        failure = self._record.failure or f"{machine.host} {how}.{_last_log_line(machine)}"
        log.warning("lost a machine", host=machine.host, how=how)
        self._record_change(replace(self._record, failure=failure))

    async def _inject_loss(self) -> None:
        if (lost_after := self._behaviour.lost_after) is not None:
            await self._sleep_until(self._behaviour.boot_delay + lost_after)
            if not self._record.failure:
                await self.lose()

    async def _end(self) -> None:
        born = list(zip(self._machines, self._record.births, strict=False))
        known = [await run_sync(members, machine, birth) for machine, birth in born]
        for process in self._processes.values():
            process.signal(signal.SIGTERM)
        await wait_at_most(self._context.clock, self._context.grace, self._all_ended)
        # Also after workers that ended in time, because they may have left processes.
        for (machine, birth), family in zip(born, known, strict=True):
            await run_sync(end_tree, machine, birth, family)
        await self._all_ended()
        for machine in self._machines:
            await self._context.cleanup(machine)
        await run_sync(lambda: shutil.rmtree(self._folder, ignore_errors=True))
        self._context.records.remove(self._record.order.id)
        self.gone.set()
        self._context.publish(self.seen())

    async def _all_ended(self) -> None:
        for process in self._processes.values():
            await process.ended()

    def _living(self) -> list[str]:
        return [host for host, process in self._processes.items() if process.alive]

    def _record_change(self, record: LocalSliceRecord) -> None:
        """Records and publishes a change. A failed write is only logged: a restart finds the processes as they are."""
        self._record = record
        try:
            self._context.records.save(record)
        except OSError as error:
            log.failure("a slice could not be recorded", error, slice=record.order.id)
        self._context.publish(self.seen())


def _last_log_line(machine: LocalMachine) -> str:
    try:
        with machine.log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_LOG_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    written = [line.strip() for line in lines if line.strip()]
    return f" Its last log line: {written[-1][:_LAST_LOG_CHARS]}" if written else ""
