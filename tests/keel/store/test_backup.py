"""Backups that can be trusted, and restores that refuse what they should not touch."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from neorion.keel.base import Error
from neorion.keel.clock import SystemClock
from neorion.keel.store import Store, Tx, open_store, restore
from tests.keel.store.postgres_server import PostgresServer
from tests.keel.store.schema import ALL, Pair, keys

pytestmark = pytest.mark.anyio


def opened(where: Path | str) -> AbstractAsyncContextManager[Store]:
    return open_store(where, migrations=ALL, clock=SystemClock())


def everything(tx: Tx) -> dict[str, list[tuple[object, ...]]]:
    queries = {
        "pair": "SELECT key, half FROM pair ORDER BY key, half",
        "note": "SELECT id, body, amount, raw, label FROM note ORDER BY id",
        "tag": "SELECT note, name FROM tag ORDER BY note, name",
        "store_migration": "SELECT number, name, checksum, applied_at FROM store_migration ORDER BY number",
    }
    return {table: tx.execute(query) for table, query in queries.items()}


def some_rows(tx: Tx) -> None:
    Pair("a")(tx)
    rows = [(n, f"body {n} ? % \t\n\\ ö", n / 3, bytes([n % 256] * n), "label") for n in range(1, 300)]
    tx.many("INSERT INTO note (id, body, amount, raw, label) VALUES (?, ?, ?, ?, ?)", rows)
    tx.execute("INSERT INTO note (id) VALUES (1000)")
    tx.many("INSERT INTO tag (note, name) VALUES (?, ?)", [(n, "x") for n in range(1, 300)])


@pytest.fixture
async def backup(tmp_path: Path) -> Path:
    async with opened(tmp_path / "source.db") as store:
        await store.write(some_rows)
        await store.backup(tmp_path / "backup.db")
    return tmp_path / "backup.db"


def flip(path: Path, content: bytes, position: int) -> None:
    flipped = bytearray(content)
    flipped[position] ^= 1
    path.write_bytes(flipped)


def content_of(path: Path) -> bytes:
    return path.read_bytes()


async def refusal(backup: Path, where: Path | str, *, replace: bool = False) -> str:
    with pytest.raises(Error) as caught:
        await restore(backup, where, migrations=ALL, replace=replace)
    return caught.value.code


async def test_a_manifest_says_what_the_backup_holds(backup: Path):
    manifest = json.loads(backup.with_name("backup.db.json").read_text())
    assert manifest["schema"] == 3
    assert manifest["rows"] == {
        "event": 0,
        "note": 301,
        "pair": 2,
        "store_migration": 3,
        "store_owner": 1,
        "tag": 299,
    }
    assert len(manifest["sha256"]) == 64
    assert {file.name for file in backup.parent.glob("*backup*")} == {"backup.db", "backup.db.json"}


async def test_a_backup_never_overwrites_another(backup: Path, tmp_path: Path):
    before = content_of(backup)
    async with opened(tmp_path / "source.db") as store:
        with pytest.raises(Error) as caught:
            await store.backup(backup)
    assert caught.value.code == "store.exists"
    assert content_of(backup) == before


@pytest.mark.needs("postgres")
async def test_a_store_moves_from_engine_to_engine_and_back_unchanged(tmp_path: Path, server: PostgresServer):
    places = [tmp_path / "one.db", server.new_schema(), server.new_schema(), tmp_path / "two.db"]
    async with opened(places[0]) as store:
        await store.write(some_rows)
        first = await store.read(everything)
        epochs = [store.epoch]
        await store.backup(tmp_path / "0.backup")
    for n, place in enumerate(places[1:]):
        await restore(tmp_path / f"{n}.backup", place, migrations=ALL)
        async with opened(place) as store:
            assert await store.read(everything) == first
            epochs.append(store.epoch)
            with pytest.raises(Error) as caught:
                await store.write(
                    lambda tx: tx.execute("INSERT INTO tag (note, name) VALUES (-5, 'dangling')")
                )
            assert caught.value.code == "store.constraint", "references hold after a restore too"
            await store.backup(tmp_path / f"{n + 1}.backup")
    assert epochs == sorted(set(epochs))


async def test_a_flipped_bit_anywhere_is_found_before_anything_is_touched(backup: Path, tmp_path: Path):
    content = content_of(backup)
    for position in range(0, len(content), len(content) // 40):
        flip(backup, content, position)
        assert await refusal(backup, tmp_path / "new.db") == "store.backup"
        assert not (tmp_path / "new.db").exists()


async def test_a_backup_without_its_manifest_is_not_a_backup(backup: Path, tmp_path: Path):
    manifest = backup.with_name("backup.db.json")
    manifest.write_text("{}")
    assert await refusal(backup, tmp_path / "new.db") == "store.backup"
    manifest.unlink()
    assert await refusal(backup, tmp_path / "new.db") == "store.backup"


async def test_a_backup_of_a_newer_program_is_refused(backup: Path, tmp_path: Path):
    with pytest.raises(Error) as caught:
        await restore(backup, tmp_path / "new.db", migrations=ALL[:2])
    assert caught.value.code == "store.newer"
    assert not (tmp_path / "new.db").exists()


async def test_a_backup_of_an_older_version_is_brought_forward(tmp_path: Path):
    async with open_store(tmp_path / "old.db", migrations=ALL[:1], clock=SystemClock()) as store:
        await store.write(Pair("old"))
        await store.backup(tmp_path / "backup.db")
    await restore(tmp_path / "backup.db", tmp_path / "new.db", migrations=ALL)
    async with opened(tmp_path / "new.db") as store:
        assert await store.read(keys) == ["old"]
        assert await store.read(lambda tx: tx.execute("SELECT COUNT(*) FROM store_migration")) == [(3,)]


async def test_a_store_in_use_is_never_replaced(backup: Path, tmp_path: Path):
    async with opened(tmp_path / "busy.db") as store:
        await store.write(Pair("mine"))
        for replace in (False, True):
            assert await refusal(backup, tmp_path / "busy.db", replace=replace) == "store.owned"
        assert await store.read(keys) == ["mine"]


async def test_a_store_that_is_not_empty_is_replaced_only_on_demand_and_kept_aside(
    backup: Path, tmp_path: Path
):
    target = tmp_path / "target.db"
    async with opened(target) as store:
        await store.write(Pair("mine"))
        epoch = store.epoch
    assert await refusal(backup, target) == "store.not_empty"
    await restore(backup, target, migrations=ALL, replace=True)
    async with opened(target) as store:
        assert await store.read(keys) == ["a"]
        assert store.epoch > epoch
    async with opened(tmp_path / "target.db.replaced-1") as store:
        assert await store.read(keys) == ["mine"]


@pytest.mark.needs("postgres")
async def test_a_postgres_store_is_guarded_in_the_same_way(backup: Path, server: PostgresServer):
    url = server.new_schema()
    async with opened(url) as store:
        await store.write(Pair("mine"))
        for replace in (False, True):
            assert await refusal(backup, url, replace=replace) == "store.owned"
    assert await refusal(backup, url) == "store.not_empty"
    await restore(backup, url, migrations=ALL, replace=True)
    async with opened(url) as store:
        assert await store.read(keys) == ["a"]
    with psycopg.connect(url) as link:
        ((schema,),) = link.execute("SELECT current_schema()").fetchall()
        aside = sql.SQL("SELECT DISTINCT key FROM {}.pair").format(sql.Identifier(f"{schema}_replaced_1"))
        assert link.execute(aside).fetchall() == [("mine",)]


async def test_a_damaged_store_can_be_replaced(backup: Path, tmp_path: Path):
    target = tmp_path / "target.db"
    async with opened(target) as store:
        await asyncio.gather(*(store.write(Pair(f"{n:04d}")) for n in range(300)))
    damaged = bytearray(target.read_bytes())
    damaged[100:8192] = b"\xff" * 8092
    target.write_bytes(damaged)
    await restore(backup, target, migrations=ALL, replace=True)
    async with opened(target) as store:
        assert await store.read(keys) == ["a"]
    assert (tmp_path / "target.db.replaced-1").read_bytes() == damaged
