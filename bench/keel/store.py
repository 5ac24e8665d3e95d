"""Durable writes per second: the store's group commit beside the bare drivers, with the same durability."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import psycopg

from bench.kit import Report
from neorion.keel.clock import SystemClock
from neorion.keel.store import Migration, Store, Tx, open_store
from neorion.keel.store.sqlite_connection import connect
from tests.keel.store.postgres_server import postgres_server
from tools import system

TABLE = Migration(1, "row", "CREATE TABLE item (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
BODY = "x" * 100
INSERT = "INSERT INTO item (id, body) VALUES (?, ?)"
BATCH = 64
# Writers → rows: about a third of a second each.
LOADS = {1: 400, 16: 3_200, 64: 8_000, 256: 12_800}
BARE_ROWS = 400
BATCHED_ROWS = 9_600

ids = count(1)


def insert(tx: Tx) -> None:
    tx.execute(INSERT, (next(ids), BODY))


async def many_writers(where: Path | str, writers: int, rows: int) -> float:
    async def write(store: Store) -> None:
        for _ in range(rows // writers):
            await store.write(insert)

    async with open_store(where, migrations=[TABLE], clock=SystemClock()) as store:
        await store.write(insert)
        start = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(writers):
                tasks.create_task(write(store))
        return rows / (time.perf_counter() - start)


def ours(where: Path | str, writers: int, rows: int) -> float:
    return asyncio.run(many_writers(where, writers, rows))


def bare_sqlite(path: Path, rows: int, batch: int) -> float:
    database = connect(path)
    assert database.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
    database.pragma("synchronous", "FULL")
    start = time.perf_counter()
    for _ in range(rows // batch):
        database.execute("BEGIN IMMEDIATE")
        for _ in range(batch):
            database.execute(INSERT, (next(ids), BODY))
        database.execute("COMMIT")
    seconds = time.perf_counter() - start
    database.close()
    return rows / seconds


def bare_postgres(url: str, rows: int, batch: int) -> float:
    with psycopg.connect(url, autocommit=True) as link:
        start = time.perf_counter()
        for _ in range(rows // batch):
            link.execute("BEGIN")
            for _ in range(batch):
                link.execute("INSERT INTO item (id, body) VALUES (%s, %s)", (next(ids), BODY))
            link.execute("COMMIT")
        return rows / (time.perf_counter() - start)


def compare(report: Report, engine: str, where: Path | str, bare: Callable[[int, int], float]) -> None:
    """Against one transaction for each row, and against batches made by hand, which no set of callers can make."""
    ours(where, 1, 1)
    one_by_one = (f"bare {engine}, one row per commit", partial(bare, BARE_ROWS, 1))
    by_hand = (f"bare {engine}, {BATCH} rows per commit by hand", partial(bare, BATCHED_ROWS, BATCH))
    for writers, rows in LOADS.items():
        report.compare(
            f"{engine}, {writers} writers", "rows/s", partial(ours, where, writers, rows), one_by_one
        )
    report.compare(f"{engine}, {BATCH} writers", "rows/s", partial(ours, where, BATCH, LOADS[BATCH]), by_hand)


def run(report: Report) -> None:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = home / "store.db"
        compare(report, "SQLite", path, partial(bare_sqlite, path))
        if system.find("postgres") is None:
            print("PostgreSQL: not installed")
            return
        url = stack.enter_context(postgres_server()).new_schema()
        compare(report, "PostgreSQL", url, partial(bare_postgres, url))
