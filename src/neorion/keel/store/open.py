"""Opens a store, and restores one. Modules that need an extra package are imported when used."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread

from neorion.keel.base import Duration, Invalid, Terminal, did_you_mean
from neorion.keel.clock import Clock
from neorion.keel.store.engine import Engine, StorageFailed, TransactionLost, end_process
from neorion.keel.store.executor import SerialExecutor, ThreadExecutor
from neorion.keel.store.memory import MemoryDisk
from neorion.keel.store.migrations import Migration, migrate, pending
from neorion.keel.store.protocols import Store

# The lease of a PostgreSQL store: a successor of a crashed owner waits this long at most.
LEASE = Duration.of(seconds=9)
# Shorter leases could be lost in an ordinary pause.
_LEASE_MIN = Duration.of(seconds=1)
_EXAMPLES = "Write sqlite:///var/lib/neorion/store.db or postgresql://user@host/database."


@asynccontextmanager
async def open_store(
    where: str | Path | MemoryDisk,
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
    target = _target(where)
    with _extra("server", "apsw"):
        from neorion.keel.store.group_commit_store import GroupedStore, StoreDependencies  # noqa: PLC0415 -- needs apsw
    lane = lane or ThreadExecutor()
    try:
        engine = await lane.run(partial(_connect, target, lease))
        store = GroupedStore(engine, StoreDependencies(lane, clock, migrations, fatal))
        try:
            await _take_over(engine, migrations, lane, clock)
            async with _beside(store.renew_forever):
                yield store
        finally:
            await store.aclose()
    except TransactionLost as lost:
        raise lost.error from lost
    except StorageFailed as broken:
        fatal(broken.cause)
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


async def _take_over(
    engine: Engine, migrations: Sequence[Migration], lane: SerialExecutor, clock: Clock
) -> None:
    # A database with unknown migrations is refused before its owner is disturbed.
    pending(migrations, await lane.run(engine.applied))
    while (wait := await lane.run(engine.claim)) is not None:
        await clock.sleep(wait)
    await lane.run(partial(migrate, engine, migrations, clock))


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


def _target(where: str | Path | MemoryDisk) -> Path | str | MemoryDisk:
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


def _connect(target: Path | str | MemoryDisk, lease: Duration) -> Engine:
    with _extra("server", "apsw"):
        from neorion.keel.store.sqlite_open import open_file, open_memory  # noqa: PLC0415 -- needs apsw
    match target:
        case MemoryDisk():
            return open_memory(target)
        case Path():
            return open_file(target)
        case str():
            if lease < _LEASE_MIN:
                raise Invalid("store.lease", f"A lease of {lease} is too short; {_LEASE_MIN} is the least.")
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
