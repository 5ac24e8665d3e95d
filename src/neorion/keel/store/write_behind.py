import asyncio
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from neorion.keel.base import Duration, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.run import Backoff, retry
from neorion.keel.store.protocols import Store, Tx
from neorion.keel.telemetry import logger

log = logger(__name__)

# Rows are written until the store accepts them: an upsert may be repeated, and a change in memory cannot be undone.
_PATIENCE: Final = Backoff(first=Duration.of(ms=50), most=Duration.of(seconds=2), attempts=10**9)


class WriteBatch(Protocol):
    """Changes that go to the store together, in one transaction."""

    def write(self, tx: Tx) -> None: ...


B = TypeVar("B", bound=WriteBatch)


class WriteBehind(Generic[B]):
    """Buffers changes that memory has and the store does not.

    Memory is ahead of the store by `batch`, so no change may become visible outside before `wait_durable` returns: a
    crash loses both. Several changes of one record are one write.
    """

    def __init__(self, store: Store, clock: Clock, rng: Rng, fresh: Callable[[], B]) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._fresh = fresh
        self._batch = fresh()
        self._noted = 0
        self._written = 0
        self._dirty = asyncio.Event()
        self._trouble = ""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._readers: list[tuple[int, asyncio.Future[str]]] = []

    @property
    def trouble(self) -> str:
        """The reason why the store takes no changes at present; empty if it takes them."""
        return self._trouble

    @property
    def version(self) -> int:
        """Increases with every change, so that a caller can detect changes."""
        return self._noted

    async def wait_durable(self) -> None:
        """Returns when all changes so far are in the store."""
        if self._written >= self._noted:
            return
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((self._noted, done))
        await done

    async def wait_readable(self) -> str:
        """Waits like `wait_durable`, but returns the trouble at once while the store accepts no changes."""
        if self._written >= self._noted or self._trouble:
            return self._trouble if self._written < self._noted else ""
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._readers.append((self._noted, done))
        return await done

    async def run(self) -> None:
        """Writes all buffered changes at once, while the next ones gather."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            batch, self._batch, goal = self._batch, self._fresh(), self._noted
            await self._commit(batch)
            self._written = goal
            self._notify(goal)

    async def _commit(self, batch: B) -> None:
        await retry(lambda: self._write(batch), _PATIENCE, self._clock, self._rng)
        if self._trouble:
            log.info("the store takes changes again")
            self._trouble = ""

    async def _write(self, batch: B) -> None:
        try:
            await self._store.write(batch.write)
        except Retry as error:
            # Logged once for each reason, because all callers wait for it without seeing it.
            if error.sentence != self._trouble:
                self._trouble = error.sentence
                log.warning("the store takes no changes", why=error.sentence, hint=error.hint)
            for _, reader in self._readers:
                if not reader.done():
                    reader.set_result(self._trouble)
            self._readers.clear()
            raise

    def _changed(self) -> None:
        self._noted += 1
        self._dirty.set()

    def _notify(self, goal: int) -> None:
        ready = [done for noted, done in self._waiting if noted <= goal]
        self._waiting = [(noted, done) for noted, done in self._waiting if noted > goal]
        for done in ready:
            if not done.done():
                done.set_result(None)
        readers = [done for noted, done in self._readers if noted <= goal]
        self._readers = [(noted, done) for noted, done in self._readers if noted > goal]
        for reader in readers:
            if not reader.done():
                reader.set_result("")
