"""Opens a store, and restores one. Modules that need an extra package are imported when used."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread

from neorion.keel.base import Conflict, Duration, Error, Invalid, Retry, Terminal, did_you_mean
from neorion.keel.clock import Clock
from neorion.keel.store.engine import Engine, StorageFailed, TransactionLost, end_process
from neorion.keel.store.executor import SerialExecutor, ThreadExecutor
from neorion.keel.store.memory import MemoryDisk, MemoryLink
from neorion.keel.store.migrations import Migration, migrate, pending
from neorion.keel.store.protocols import Store

# How long a PostgreSQL store stays ours without renewal: a successor of a crashed owner waits this long at most. With the
# start of the successor it stays below ten seconds.
LEASE = Duration.of(seconds=7)
# Between two looks of a standby at the lease.
STANDBY_LOOK_EVERY = Duration.of(ms=250)
# Shorter leases could be lost in an ordinary pause.
_LEASE_MIN = Duration.of(seconds=1)
# Is told what a process that stands by waits for, as often as it looks.
OnWait = Callable[[Error], None]
T = TypeVar("T")
_Target = Path | str | MemoryDisk | MemoryLink
_EXAMPLES = "Write sqlite:///var/lib/neorion/store.db or postgresql://user@host/database."


@dataclass(frozen=True, slots=True)
class _Terms:
    """The terms under which a store is opened."""

    migrations: Sequence[Migration]
    clock: Clock
    lane: SerialExecutor
    lease: Duration
    fatal: Callable[[BaseException], NoReturn] = end_process
    on_wait: OnWait | None = None


@asynccontextmanager
async def open_store(
    where: _Target,
    *,
    migrations: Sequence[Migration],
    clock: Clock,
    lane: SerialExecutor | None = None,
    lease: Duration = LEASE,
    fatal: Callable[[BaseException], NoReturn] = end_process,
) -> AsyncGenerator[Store]:
    """Opens a store as its only owner, migrated to the current schema; closes it when the block ends.

    `where` is a path, `sqlite:///path` or `postgresql://user@host/database`. `fatal` must end the process: it is called
    after a failed write or sync, when the content of the disk is unknown.
    """
    async with _open(
        _target(where), _Terms(migrations, clock, lane or ThreadExecutor(), lease, fatal)
    ) as store:
        yield store


@asynccontextmanager
async def await_store(
    where: str | MemoryLink,
    on_wait: OnWait,
    *,
    migrations: Sequence[Migration],
    clock: Clock,
    lane: SerialExecutor | None = None,
    lease: Duration = LEASE,
) -> AsyncGenerator[Store]:
    """Opens a store of a database server when its present owner has ended, however long that takes.

    `on_wait` is told what it waits for: an owner, or a server that cannot be reached.
    """
    terms = _Terms(migrations, clock, lane or ThreadExecutor(), lease, on_wait=on_wait)
    async with _open(_target(where), terms) as store:
        yield store


@asynccontextmanager
async def _open(target: _Target, terms: _Terms) -> AsyncGenerator[Store]:
    with _extra("server", "apsw"):
        from neorion.keel.store.group_commit_store import GroupedStore, StoreDependencies  # noqa: PLC0415 -- needs apsw
    lane = terms.lane
    try:
        engine = await _patiently(lambda: lane.run(partial(_connect, target, terms.lease)), terms)
        store = GroupedStore(engine, StoreDependencies(lane, terms.clock, terms.migrations, terms.fatal))
        try:
            await _take_over(engine, terms)
            # The lease counts from here: migrations may have taken their time.
            await store.renew()
            async with _beside(store.renew_forever):
                yield store
        finally:
            await store.aclose()
    except TransactionLost as lost:
        raise lost.error from lost
    except StorageFailed as broken:
        terms.fatal(broken.cause)
    finally:
        await lane.aclose()


async def restore(
    backup: Path, where: str | Path, *, migrations: Sequence[Migration], replace: bool = False
) -> None:
    """Fills an empty store from a verified backup. With `replace`, an old store is kept under another name."""
    target = _target(where)
    with _extra("server", "apsw"):
        from neorion.keel.store.sqlite_restore import restore_sqlite  # noqa: PLC0415 -- needs apsw
    if isinstance(target, Path):
        await anyio.to_thread.run_sync(partial(restore_sqlite, backup, target, migrations, replace=replace))
    elif isinstance(target, str):
        with _extra("postgres", "psycopg"):
            from neorion.keel.store.postgres_restore import restore_postgres  # noqa: PLC0415 -- needs psycopg
        await anyio.to_thread.run_sync(partial(restore_postgres, backup, target, migrations, replace=replace))


async def _take_over(engine: Engine, terms: _Terms) -> None:
    # A database with unknown migrations is refused before its owner is disturbed.
    pending(terms.migrations, await terms.lane.run(engine.applied))
    while (wait := await _patiently(lambda: terms.lane.run(engine.claim), terms)) is not None:
        await terms.clock.sleep(wait if terms.on_wait is None else min(wait, STANDBY_LOOK_EVERY))
    await terms.lane.run(partial(migrate, engine, terms.migrations, terms.clock))


async def _patiently(step: Callable[[], Awaitable[T]], terms: _Terms) -> T:
    """Repeats what fails because of an owner that lives or a server that is away, if the caller waits for that."""
    while True:
        try:
            return await step()
        except (TransactionLost, Conflict) as error:
            told = error.error if isinstance(error, TransactionLost) else error
            if terms.on_wait is None or not (isinstance(told, Retry) or told.code == "store.owned"):
                raise
            terms.on_wait(told)
        await terms.clock.sleep(STANDBY_LOOK_EVERY)


@asynccontextmanager
async def _beside(task: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Runs a task while the block runs."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task)
        try:
            yield
        except Exception as error:  # noqa: BLE001 -- raised again below, where no group wraps it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _target(where: _Target) -> _Target:
    """Parses the address: a path for SQLite, a text for PostgreSQL."""
    if not isinstance(where, str):
        return where
    if "://" not in where:
        return Path(where)
    try:
        parts = urlsplit(where)
    except ValueError as error:
        raise Invalid("store.url", f"The address cannot be read: {error}.", hint=_EXAMPLES) from error
    match parts.scheme:
        case "postgresql" | "postgres":
            return where
        case "sqlite" if not parts.netloc and parts.path.strip("/"):
            return Path(unquote(parts.path))
        case "sqlite":
            raise Invalid("store.url", "The address names no file.", hint=_EXAMPLES)
        case other:
            raise Invalid(
                "store.url",
                f'The kind of store "{other}" does not exist.',
                hint=did_you_mean(other, ["sqlite", "postgresql"]),
            )


def _connect(target: _Target, lease: Duration) -> Engine:
    with _extra("server", "apsw"):
        from neorion.keel.store.sqlite_open import open_file, open_memory  # noqa: PLC0415 -- needs apsw
    match target:
        case MemoryDisk():
            return open_memory(target)
        case MemoryLink():
            from neorion.keel.store.memory_server import MemoryServerEngine  # noqa: PLC0415 -- only simulations use it

            return MemoryServerEngine(target, lease)
        case Path():
            return open_file(target)
        case str():
            if lease < _LEASE_MIN:
                raise Invalid(
                    "store.lease",
                    f"A lease of {lease} is too short; {_LEASE_MIN} is the least.",
                    hint="Use a longer lease.",
                )
            with _extra("postgres", "psycopg"):
                from neorion.keel.store.postgres import PostgresEngine  # noqa: PLC0415 -- needs psycopg
            return PostgresEngine(target, lease)


@contextmanager
def _extra(name: str, package: str) -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise Terminal(
            "store.extra",
            f"This store needs the package {package}, which is not installed.",
            hint=f"Run: pip install 'neorion[{name}]'.",
        ) from error
