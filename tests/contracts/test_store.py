"""What every store promises, whatever the engine and whether it has threads or not."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import psycopg
import pytest

from neorion.keel.base import Conflict, Duration, Error, Invalid, Retry, Severity, Terminal
from neorion.keel.clock import SystemClock
from neorion.keel.store import (
    InlineExecutor,
    MemoryDisk,
    Migration,
    Store,
    Tx,
    group_commit_store,
    open_store,
    restore,
)
from neorion.keel.store.sqlite_connection import connect
from tests.keel.store.postgres_server import PostgresServer, postgres_server
from tests.keel.store.schema import ALL, Pair, keys

pytestmark = pytest.mark.anyio

# Short, so that a refused second owner of a PostgreSQL store knows soon that the first one lives.
LEASE = Duration.of(seconds=3)


@dataclass(frozen=True)
class Place:
    """Somewhere a store lives, to be opened again and again."""

    where: Path | str | MemoryDisk
    new: Callable[[], "Place"]

    def open(self, migrations: list[Migration] = ALL) -> AbstractAsyncContextManager[Store]:
        lane = InlineExecutor() if isinstance(self.where, MemoryDisk) else None
        return open_store(self.where, migrations=migrations, clock=SystemClock(), lane=lane, lease=LEASE)

    def usurp(self) -> None:
        """Does what a new owner does first."""
        if isinstance(self.where, str):
            with psycopg.connect(self.where) as other:
                other.execute("UPDATE store_owner SET epoch = epoch + 1")
        else:
            other = connect(self.where.uri if isinstance(self.where, MemoryDisk) else self.where)
            other.execute("UPDATE store_owner SET epoch = epoch + 1")
            other.close()


@pytest.fixture(scope="session")
def server() -> Generator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture(
    params=["sqlite", "sqlite without threads", pytest.param("postgres", marks=pytest.mark.needs("postgres"))]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    numbers = iter(range(100))

    def new() -> Place:
        match request.param:
            case "sqlite":
                return Place(tmp_path / f"{next(numbers)}.db", new)
            case "postgres":
                running: PostgresServer = request.getfixturevalue("server")
                return Place(running.new_schema(), new)
            case _:
                return Place(MemoryDisk(), new)

    return new()


async def test_an_acknowledged_write_is_read_back_and_outlives_the_store(place: Place):
    async with place.open() as store:
        assert await store.write(Pair("a")) == "a"
        assert await store.read(keys) == ["a"]
    async with place.open() as store:
        assert await store.read(keys) == ["a"]


async def test_one_callers_exception_undoes_its_change_and_reaches_nobody_else(place: Place):
    def fail(tx: Tx) -> None:
        Pair("b")(tx)
        raise LookupError("mine")

    async with place.open() as store:
        answers = await asyncio.gather(
            store.write(Pair("a")), store.write(fail), store.write(Pair("c")), return_exceptions=True
        )
        assert answers[0] == "a"
        assert isinstance(answers[1], LookupError)
        assert answers[2] == "c"
        assert await store.read(keys) == ["a", "c"]


async def test_a_broken_constraint_is_a_conflict_of_its_caller_alone(place: Place):
    async with place.open() as store:
        answers = await asyncio.gather(
            *(store.write(Pair(key)) for key in ("a", "b", "a")),
            store.write(lambda tx: tx.execute("INSERT INTO tag (note, name) VALUES (99, 'x')")),
            return_exceptions=True,
        )
        assert answers[:2] == ["a", "b"]
        assert [getattr(answer, "code", None) for answer in answers[2:]] == ["store.constraint"] * 2
        assert await store.read(keys) == ["a", "b"]


async def test_swallowing_a_failed_statement_does_not_save_the_change(place: Place):
    def swallow(tx: Tx) -> None:
        Pair("b")(tx)
        with suppress(Conflict):
            Pair("a")(tx)

    async with place.open() as store:
        await store.write(Pair("a"))
        with pytest.raises(Conflict) as caught:
            await store.write(swallow)
        assert caught.value.code == "store.constraint"
        assert await store.read(keys) == ["a"]


async def test_changes_are_applied_in_the_order_of_the_calls(place: Place):
    def append(letter: str) -> Callable[[Tx], object]:
        return lambda tx: tx.execute("UPDATE note SET body = body || ? WHERE id = 1", (letter,))

    async with place.open() as store:
        await store.write(lambda tx: tx.execute("INSERT INTO note (id, body) VALUES (1, '')"))
        letters = [chr(ord("a") + n % 26) for n in range(700)]  # more than one batch
        await asyncio.gather(*(store.write(append(letter)) for letter in letters))
        ((body,),) = await store.read(lambda tx: tx.execute("SELECT body FROM note WHERE id = 1"))
        assert body == "".join(letters)


async def test_a_caller_cancelled_while_waiting_leaves_nothing(place: Place):
    async with place.open() as store:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.write(Pair("cancelled"))
        assert scope.cancelled_caught
        await store.write(Pair("after"))
        assert await store.read(keys) == ["after"]


async def test_a_callers_cancellation_never_halves_a_change(place: Place):
    async with place.open() as store, anyio.create_task_group() as tasks:
        scopes = [anyio.CancelScope() for _ in range(20)]

        async def write(n: int) -> None:
            with scopes[n]:
                await store.write(Pair(f"{n:02d}"))

        for n in range(20):
            tasks.start_soon(write, n)
        await store.write(Pair("barrier"))
        for scope in scopes[::2]:
            scope.cancel()
    async with place.open() as store:
        assert set(await store.read(keys)) >= {"barrier", *(f"{n:02d}" for n in range(1, 20, 2))}


async def test_a_query_cannot_write(place: Place):
    async with place.open() as store:
        with pytest.raises(Terminal) as caught:
            await store.read(Pair("a"))
        assert caught.value.code == "store.sql"
        assert await store.read(keys) == []


async def test_a_transaction_handle_is_useless_after_its_function(place: Place):
    kept = list[Tx]()
    async with place.open() as store:
        await store.write(kept.append)
        with pytest.raises(Terminal) as caught:
            kept[0].execute("SELECT 1")
        assert caught.value.code == "store.over"


async def test_values_come_back_as_they_went(place: Place):
    rows = [
        (1, None, None, None),
        (2**63 - 1, "text with ? and % and 'quotes' and ö and 🜁", 0.1, b"\x00\xff?%"),
        (-(2**63), "", -1e300, b""),
        (True, "truth is 1", 2.0, None),
    ]
    async with place.open() as store:
        insert = "INSERT INTO note (id, body, amount, raw) VALUES (?, ?, ?, ?)"
        await store.write(lambda tx: tx.many(insert, rows[1:]))
        await store.write(lambda tx: tx.execute("DELETE FROM note WHERE id = ?", (1,)))
        await store.write(lambda tx: tx.execute(insert, rows[0]))
        found = await store.read(
            lambda tx: tx.execute("SELECT id, body, amount, raw FROM note WHERE id <> 0 ORDER BY id")
        )
        assert found == sorted(rows[:3])


async def test_the_common_sql_means_the_same_everywhere(place: Place):
    async with place.open() as store:
        await store.write(
            lambda tx: tx.many(
                "INSERT INTO note (id, body) VALUES (?, ?)", [(1, "b"), (2, "B"), (3, "a"), (4, "ä")]
            )
        )

        def ask(tx: Tx) -> tuple[object, ...]:
            return (
                tx.execute("SELECT body FROM note WHERE id > 0 ORDER BY body"),
                tx.execute("SELECT SUM(id), AVG(id), COUNT(*), MAX(body) FROM note WHERE id > 0"),
                tx.execute("SELECT '?%', ? || '%' FROM note WHERE body = ?", ("x", "a")),
                tx.execute(
                    "INSERT INTO note (id) VALUES (3) ON CONFLICT (id) DO UPDATE SET body = 'z' RETURNING body"
                ),
            )

        bytewise, sums, quoted, returned = await store.write(ask)
        assert bytewise == [("B",), ("a",), ("b",), ("ä",)]
        assert sums == [(10, 2.5, 4, "ä")]
        assert quoted == [("?%", "x%")]
        assert returned == [("z",)]


@pytest.mark.parametrize(
    "sql",
    [
        "COMMIT",
        "PRAGMA user_version = 3",
        "SELECT 1; SELECT 2",
        "",
        "SELECT nonsense FROM nowhere",
        "INSERT INTO note (id, amount) VALUES (1, 'not a number')",
        'SELECT "text in double quotes"',
    ],
)
async def test_a_bad_statement_is_refused_and_the_store_goes_on(place: Place, sql: str):
    async with place.open() as store:
        with pytest.raises(Terminal) as caught:
            await store.write(lambda tx: tx.execute(sql))
        assert caught.value.code == "store.sql"
        await store.write(Pair("after"))
        assert await store.read(keys) == ["after"]


async def test_every_owner_has_a_higher_epoch(place: Place):
    epochs = list[int]()
    for _ in range(3):
        async with place.open() as store:
            epochs.append(store.epoch)
    assert epochs == sorted(set(epochs))


async def test_a_second_owner_is_refused_and_the_first_goes_on(place: Place):
    async with place.open() as store:
        with pytest.raises(Conflict) as caught:
            async with place.open():
                pass
        assert caught.value.code == "store.owned"
        await store.write(Pair("first"))
    async with place.open() as store:
        assert await store.read(keys) == ["first"]


async def test_an_owner_that_was_overtaken_never_writes_again_but_may_read(place: Place):
    async with place.open() as store:
        await store.write(Pair("before"))
        place.usurp()
        for key in ("during", "later"):
            with pytest.raises(Conflict) as caught:
                await store.write(Pair(key))
            assert caught.value.code == "store.fenced"
        with pytest.raises(Conflict):
            await store.until_lost()
        assert await store.read(keys) == ["before"]


async def test_too_many_waiting_writes_are_told_to_come_back(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_commit_store, "WAITING_MAX", 10)
    async with place.open() as store:
        answers = await asyncio.gather(
            *(store.write(Pair(f"{n:02d}")) for n in range(12)), return_exceptions=True
        )
        assert answers[:10] == [f"{n:02d}" for n in range(10)]
        for answer in answers[10:]:
            assert isinstance(answer, Retry)
            assert answer.code == "store.busy"
            assert answer.after is not None
        assert len(await store.read(keys)) == 10


async def test_closing_finishes_what_waits_and_refuses_what_comes(place: Place):
    async with place.open() as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.write, Pair("waiting"))
        await anyio.lowlevel.checkpoint()
        await store.aclose()
        for use in (store.write(Pair("late")), store.read(keys)):
            with pytest.raises(Terminal) as caught:
                await use
            assert caught.value.code == "store.closed"
    async with place.open() as store:
        assert await store.read(keys) == ["waiting"]


async def test_an_exception_of_the_block_arrives_as_it_is(place: Place):
    with pytest.raises(LookupError):
        async with place.open():
            raise LookupError


@pytest.mark.parametrize("version", range(len(ALL)))
async def test_every_earlier_version_moves_forward_with_its_rows(place: Place, version: int):
    async with place.open(ALL[:version]) as store:
        if version > 0:
            await store.write(Pair("old"))
            await store.write(lambda tx: tx.execute("INSERT INTO note (id, body) VALUES (7, 'old')"))
    async with place.open() as store:
        if version > 0:
            assert await store.read(keys) == ["old"]
            rows = await store.read(lambda tx: tx.execute("SELECT body, label FROM note WHERE id = 7"))
            assert rows == [("old", "none")]
        history = await store.read(
            lambda tx: tx.execute("SELECT number, name FROM store_migration ORDER BY number")
        )
        assert history == [(1, "pairs"), (2, "labels"), (3, "events")]


@pytest.mark.parametrize(
    ("migrations", "code"),
    [
        (ALL[:2], "store.newer"),
        ([ALL[0], replace(ALL[1], sql="SELECT 1"), ALL[2]], "store.edited"),
        ([ALL[0], ALL[2]], "store.migrations"),
        ([*ALL, ALL[2]], "store.migrations"),
    ],
)
async def test_a_database_that_does_not_fit_the_program_is_left_alone(
    place: Place, migrations: list[Migration], code: str
):
    async with place.open() as store:
        epoch = store.epoch
        await store.write(Pair("kept"))
    with pytest.raises((Conflict, Invalid)) as caught:
        async with place.open(migrations):
            pass
    assert caught.value.code == code
    async with place.open() as store:
        assert store.epoch == epoch + 1
        assert await store.read(keys) == ["kept"]


async def test_a_migration_that_fails_leaves_nothing_of_itself(place: Place):
    bad = Migration(4, "bad", "CREATE TABLE half (id INTEGER PRIMARY KEY); INSERT INTO nowhere VALUES (1)")
    good = Migration(4, "good", "CREATE TABLE half (id INTEGER PRIMARY KEY)")
    with pytest.raises(Error) as caught:
        async with place.open([*ALL, bad]):
            pass
    assert caught.value.code == "store.sql"
    async with place.open([*ALL, good]) as store:
        assert await store.read(lambda tx: tx.execute("SELECT COUNT(*) FROM half")) == [(0,)]


async def test_a_backup_taken_while_writing_restores_to_a_consistent_moment(place: Place, tmp_path: Path):
    backup = tmp_path / "backup.db"
    async with place.open() as store:
        epoch = store.epoch
        await asyncio.gather(*(store.write(Pair(f"before {n:03d}")) for n in range(100)))
        async with anyio.create_task_group() as tasks:
            for n in range(100):
                tasks.start_soon(store.write, Pair(f"during {n:03d}"))
            await store.backup(backup)
    other = place.new()
    if isinstance(other.where, MemoryDisk):
        other = replace(other, where=tmp_path / "restored.db")
    await restore(backup, other.where, migrations=ALL)  # pyright: ignore[reportArgumentType] -- no memory disk here
    async with other.open() as store:
        assert store.epoch > epoch
        found = await store.read(keys)
        assert [key for key in found if key.startswith("before")] == [f"before {n:03d}" for n in range(100)]
        assert await store.read(lambda tx: tx.execute("SELECT body FROM note")) == [
            ("brought by a migration",)
        ]
        await store.write(Pair("goes on"))


async def test_the_doctor_finds_nothing_wrong_with_a_healthy_store(place: Place):
    async with place.open() as store:
        await store.write(Pair("a"))
        assert [one for one in await store.check() if one.severity is Severity.ERROR] == []
