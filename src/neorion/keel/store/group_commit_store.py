"""The store: callers queue their changes, one batch at a time goes to the engine, results are returned."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import anyio

from neorion.keel.base import Duration, Error, Finding, Retry, Terminal
from neorion.keel.clock import Clock
from neorion.keel.store.backup import write_backup
from neorion.keel.store.engine import Engine, OwnershipLost, Reader, StorageFailed, TransactionLost
from neorion.keel.store.executor import SerialExecutor
from neorion.keel.store.group_commit import BoundTx, Change, Committed, Outcome, RolledBack, commit_together
from neorion.keel.store.migrations import Migration
from neorion.keel.store.protocols import Tx
from neorion.keel.telemetry import logger

log = logger(__name__)
T = TypeVar("T")

# Callers that may wait for a commit: about a second's work of a slow disk. More would only wait longer.
WAITING_MAX = 4_096
# Changes under one commit: a larger batch gains nothing more per change and makes the first wait for the last.
BATCH_MAX = 512
# Queries at once; each costs a connection and a thread.
READERS = 4
_BUSY_AFTER = Duration.of(ms=200)
# Of the lease, by the clock of this process from before the renewal was sent. The rest is for clocks that run at
# different rates: a successor waits for the whole lease by the clock of the server.
_SURE = 0.7
_RENEWED_AFTER = Duration.of(seconds=1)


@dataclass(frozen=True, slots=True)
class _PendingChange:
    change: Change
    answer: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class StoreDependencies:
    """The parts that a store needs besides its engine."""

    lane: SerialExecutor
    clock: Clock
    migrations: Sequence[Migration]
    fatal: Callable[[BaseException], NoReturn]


class GroupedStore:
    """Group commit over any engine.

    While one batch is written, later callers queue up; they are committed together after the first batch's results are
    returned. All state belongs to the event loop, none to the executor.
    """

    def __init__(self, engine: Engine, dependencies: StoreDependencies) -> None:
        self._engine = engine
        self._dependencies = dependencies
        self._lane = dependencies.lane
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._waiting = deque[_PendingChange]()
        self._busy = False
        self._idle = asyncio.Event()
        self._refusal: Error | None = None
        self._lost = asyncio.Event()
        self._readers = deque[Reader]()
        self._turns = asyncio.Semaphore(READERS)
        self._closed = False
        self._sure_until = 0.0

    @property
    def epoch(self) -> int:
        return self._engine.epoch

    async def write(self, change: Callable[[Tx], T]) -> T:
        self._refuse_child()
        if self._refusal is not None:
            raise copy(self._refusal)
        if len(self._waiting) >= WAITING_MAX:
            raise Retry(
                "store.busy",
                f"{WAITING_MAX} writes are waiting already.",
                hint="Try again a little later.",
                after=_BUSY_AFTER,
            )
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(_PendingChange(change, answer))
        if not self._busy:
            self._busy = True
            self._idle.clear()
            # Not at once, so that callers of the same moment share the first batch.
            self._loop.call_soon(self._start)
        return await answer

    async def read(self, query: Callable[[Tx], T]) -> T:
        return await self._query(partial(_answer, query))

    async def backup(self, path: Path) -> None:
        dependencies = self._dependencies
        await self._query(
            lambda reader: write_backup(reader, dependencies.migrations, path, dependencies.clock),
            pooled=False,
        )

    async def check(self) -> list[Finding]:
        return await self._query(lambda reader: reader.findings())

    async def until_lost(self) -> None:
        await self._lost.wait()
        raise copy(self._refusal) if self._refusal else AssertionError("lost without a reason")

    def check_lease(self) -> None:
        if self._engine.lease is not None and self._dependencies.clock.monotonic() >= self._sure_until:
            raise Retry(
                "store.standby",
                "This process could not renew its lease on the store, so another one may lead.",
                hint="Ask again, or ask the other one.",
                after=_RENEWED_AFTER,
            )

    async def renew(self) -> None:
        """Extends the lease, or raises why it could not."""
        began = self._dependencies.clock.monotonic()
        await self._lane.run(self._engine.renew)
        if self._engine.lease is not None:
            self._sure_until = began + self._engine.lease.seconds * _SURE

    async def renew_forever(self) -> None:
        """Renews ownership until it is lost."""
        lease = self._engine.lease
        while lease is not None and self._refusal is None:
            await self._dependencies.clock.sleep(lease * (1 / 3))
            try:
                await self.renew()
            except OwnershipLost as fenced:
                self._refuse(fenced.error)
            except (TransactionLost, Error) as error:
                # There are further renewals before the lease ends, and otherwise the epoch decides.
                log.warning("lease not renewed", reason=str(error))

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._refusal = self._refusal or Terminal("store.closed", "The store is closed.")
        self._lost.set()
        with anyio.CancelScope(shield=True):
            if self._busy:
                await self._idle.wait()
            for _ in range(READERS):
                await self._turns.acquire()
            await self._lane.run(self._close)
            await self._lane.aclose()

    def _close(self) -> None:
        for reader in self._readers:
            reader.close()
        self._engine.close()

    def _start(self) -> None:
        batch = list[_PendingChange]()
        while self._waiting and len(batch) < BATCH_MAX:
            waiting = self._waiting.popleft()
            if not waiting.answer.done():
                batch.append(waiting)
        if batch:
            self._lane.start(partial(self._commit, batch))
        else:
            self._busy = False
            self._idle.set()

    def _commit(self, batch: list[_PendingChange]) -> None:
        """Commits a batch in the executor. Results are returned before maintenance."""
        deliver = self._lane.deliver
        try:
            outcomes = commit_together(self._engine, [waiting.change for waiting in batch])
            deliver(partial(self._settle, batch, outcomes))
            batch = []
            self._engine.tidy()
        except OwnershipLost as fenced:
            deliver(partial(self._refuse, fenced.error))
            deliver(partial(self._settle, batch, _all_failed(batch, fenced.error)))
        except BaseException as error:  # noqa: BLE001 -- in an unknown state no caller may get a success
            cause = error.cause if isinstance(error, StorageFailed) else error
            broken = Terminal("store.broken", f"The storage failed: {cause}.", hint="Check the disk.")
            try:
                self._dependencies.fatal(cause)
            finally:
                deliver(partial(self._refuse, broken))
                deliver(partial(self._settle, batch, _all_failed(batch, broken)))

    def _settle(self, batch: list[_PendingChange], outcomes: Sequence[Outcome]) -> None:
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if waiting.answer.done():
                continue
            match outcome:
                case Committed(value):
                    waiting.answer.set_result(value)
                case RolledBack(error):
                    waiting.answer.set_exception(error)
        # After the callers that were just woken, so that their next writes share a batch.
        self._loop.call_soon(self._start)

    def _refuse(self, error: Error) -> None:
        """Refuses all writes from now on."""
        if self._refusal is None:
            self._refusal = error
            log.error("store lost", why=str(error), code=error.code)
        self._lost.set()
        while self._waiting:
            answer = self._waiting.popleft().answer
            if not answer.done():
                answer.set_exception(copy(error))

    async def _query(self, job: Callable[[Reader], T], *, pooled: bool = True) -> T:
        self._refuse_child()
        self._refuse_closed()
        async with self._turns:
            self._refuse_closed()
            return await self._lane.beside(partial(self._with_reader, job, pooled=pooled))

    def _with_reader(self, job: Callable[[Reader], T], *, pooled: bool) -> T:
        """Runs a query beside the executor, in its own thread."""
        reader = self._begun_reader() if pooled else None
        if reader is None:
            reader = self._engine.reader()
            try:
                reader.begin()
            except BaseException:
                reader.close()
                raise
        try:
            return job(reader)
        finally:
            reader.end()
            if pooled and reader.usable:
                self._readers.append(reader)
            else:
                reader.close()

    def _begun_reader(self) -> Reader | None:
        """A reader from the pool with a new snapshot; readers whose connection is gone are dropped."""
        while True:
            try:
                reader = self._readers.pop()
            except IndexError:
                return None
            try:
                reader.begin()
            except Error:
                reader.close()
            else:
                return reader

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Terminal("store.closed", "The store is closed.")

    def _refuse_child(self) -> None:
        # A forked child has the lock's descriptor but neither the thread nor the right to use the connection.
        if os.getpid() != self._pid:
            raise Terminal(
                "store.forked",
                "This store was opened by the parent process.",
                hint="Fork before opening the store.",
            )


def _answer(query: Callable[[Tx], T], reader: Reader) -> T:
    with BoundTx(reader) as tx:
        return query(tx)


def _all_failed(batch: list[_PendingChange], error: Error) -> list[RolledBack]:
    return [RolledBack(copy(error)) for _ in batch]
