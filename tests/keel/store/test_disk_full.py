import os
import subprocess
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from neorion.keel.base import Error
from neorion.keel.clock import SystemClock
from neorion.keel.store import Store, Tx, open_store
from tests.keel.store.schema import ALL, Pair, keys

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root"),
]


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def large(n: int, tx: Tx) -> str:
    tx.execute("INSERT INTO note (id, raw) VALUES (?, ?)", (n + 1, b"x" * 20_000))
    return Pair(f"{n:04d}")(tx)


async def fill(store: Store) -> tuple[list[str], Error]:
    """Writes until the store refuses; returns what it acknowledged, and how it refused."""
    acknowledged = list[str]()
    while True:
        try:
            acknowledged.append(await store.write(partial(large, len(acknowledged))))
        except Error as error:
            return acknowledged, error


async def test_a_full_disk_refuses_writes_keeps_reads_and_heals_by_itself(small_disk: Path):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(500_000))
    async with open_store(small_disk / "store.db", migrations=ALL, clock=SystemClock()) as store:
        acknowledged, refusal = await fill(store)
        assert refusal.code == "store.full"
        assert "space" in refusal.hint
        assert len(acknowledged) > 5
        for _ in range(3):
            assert await store.read(keys) == acknowledged
            with pytest.raises(Error) as caught:
                await store.write(
                    lambda tx: tx.execute("INSERT INTO note (id, raw) VALUES (-1, ?)", (bytes(800_000),))
                )
            assert caught.value.code == "store.full"
        ballast.unlink()
        await store.write(Pair("healed"))
        assert await store.read(keys) == [*acknowledged, "healed"]
    async with open_store(small_disk / "store.db", migrations=ALL, clock=SystemClock()) as store:
        assert await store.check() == []
        assert await store.read(keys) == [*acknowledged, "healed"]


async def test_a_disk_that_is_full_from_the_start_is_refused_by_name(small_disk: Path):
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while ballast.write(bytes(4096)):
            pass
    with pytest.raises(Error) as caught:
        async with open_store(small_disk / "store.db", migrations=ALL, clock=SystemClock()):
            pass
    assert caught.value.code == "store.full"


async def test_a_backup_that_does_not_fit_leaves_nothing_and_the_store_goes_on(
    small_disk: Path, tmp_path_factory: pytest.TempPathFactory
):
    home = tmp_path_factory.mktemp("home")
    async with open_store(home / "store.db", migrations=ALL, clock=SystemClock()) as store:
        await store.write(
            lambda tx: tx.execute("INSERT INTO note (id, raw) VALUES (1, ?)", (bytes(4_000_000),))
        )
        with pytest.raises(Error) as caught:
            await store.backup(small_disk / "backup.db")
        assert caught.value.code == "store.full"
        assert os.listdir(small_disk) == []  # noqa: PTH208 -- pathlib blocks no less, and says so
        await store.write(Pair("goes on"))
        await store.backup(home / "backup.db")
