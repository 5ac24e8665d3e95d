"""What is true of SQLite alone: the file, its lock, its journal, its damage."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from neorion.keel.base import Conflict, Error, Invalid, NotFound, Retry, Terminal
from neorion.keel.clock import SystemClock
from neorion.keel.store import Store, Tx, open_store, sqlite, sqlite_open
from neorion.keel.store.files import network_filesystem
from neorion.keel.store.sqlite_connection import connect
from tests.keel.store.schema import ALL, Pair, keys
from tests.keel.store.writer import writer

pytestmark = pytest.mark.anyio


def opened(where: Path | str) -> AbstractAsyncContextManager[Store]:
    return open_store(where, migrations=ALL, clock=SystemClock())


async def refused(where: Path | str) -> Error:
    with pytest.raises(Error) as caught:
        async with opened(where):
            pass
    assert caught.value.hint, "a refusal says what to do"
    return caught.value


async def code_of(use: Awaitable[object]) -> str | None:
    try:
        await use
    except Error as error:
        return error.code
    return None


async def test_the_file_is_in_wal_mode_with_full_sync_and_readable_by_its_owner_alone(tmp_path: Path):
    async with opened(f"sqlite://{tmp_path}/store.db") as store:
        await store.write(Pair("a"))
        other = connect(tmp_path / "store.db", read_only=True)
        assert other.pragma("journal_mode") == "wal"
        other.close()
        for file in ("store.db", "store.db-wal", "store.db.lock"):
            assert (tmp_path / file).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("mysql://host/db", "store.url"),
        ("sqlite://", "store.url"),
        ("sqlite://relative/path", "store.url"),
        ("postgresql://[broken", "store.url"),
    ],
)
async def test_an_address_that_cannot_be_meant_is_refused(where: str, code: str):
    assert (await refused(where)).code == code


async def test_a_kind_of_store_is_suggested():
    assert (await refused("postgersql://host/db")).hint == 'did you mean "postgresql"?'


async def test_places_that_are_no_place_for_a_store_are_refused(tmp_path: Path):
    missing = await refused(tmp_path / "missing" / "store.db")
    assert isinstance(missing, NotFound)
    assert missing.code == "store.directory"
    assert (await refused(tmp_path)).code == "store.file"


async def test_a_file_of_somebody_else_is_refused_and_left_as_it_was(tmp_path: Path):
    text = tmp_path / "notes.txt"
    text.write_text("a poem, not a database")
    foreign = tmp_path / "foreign.db"
    database = connect(foreign)
    database.execute("CREATE TABLE theirs (x)")
    database.close()
    for file in (text, foreign):
        before = file.read_bytes()
        assert (await refused(file)).code == "store.foreign"
        assert file.read_bytes() == before


async def test_a_file_with_two_names_is_refused(tmp_path: Path):
    async with opened(tmp_path / "store.db"):
        pass
    (tmp_path / "other.db").hardlink_to(tmp_path / "store.db")
    for name in ("store.db", "other.db"):
        assert (await refused(tmp_path / name)).code == "store.linked"


async def test_a_symbolic_link_leads_to_the_same_lock(tmp_path: Path):
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    async with opened(tmp_path / "store.db"):
        assert (await refused(tmp_path / "link.db")).code == "store.owned"


async def test_a_second_process_is_refused_and_told_who_owns_the_store(tmp_path: Path):
    async with writer("serve", tmp_path / "store.db") as other:
        error = await refused(tmp_path / "store.db")
        assert isinstance(error, Conflict)
        assert error.code == "store.owned"
        assert f"process {other.pid}." in error.sentence
        other.kill()
        await other.wait()
        async with opened(tmp_path / "store.db") as store:
            assert store.epoch == 2, "the kernel let go of the lock"


async def test_a_forked_child_may_not_use_its_parents_store(tmp_path: Path):
    script = f"""
import asyncio, os
from neorion.keel.clock import SystemClock
from neorion.keel.store import open_store
async def main():
    async with open_store({str(tmp_path / "store.db")!r}, migrations=[], clock=SystemClock()) as store:
        child = os.fork()
        if child == 0:
            try:
                await store.write(lambda tx: None)
            except Exception as error:
                os._exit(7 if error.code == "store.forked" else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
asyncio.run(main())
"""
    done = await anyio.run_process([sys.executable, "-c", script])
    assert done.stdout == b"7\n"


MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/vda rw
31 22 0:40 / /mnt/share rw - nfs4 server:/share rw
32 31 0:41 / /mnt/share/local rw - xfs /dev/vdb rw
33 22 0:42 / /mnt/with\\040blank rw - fuse.sshfs me@there:/ rw
34 22 0:43 / /over rw - ext4 /dev/vdc rw
35 22 0:44 / /over rw - cifs //server/share rw
36 22 0:45 / /juice rw - fuse.juicefs JuiceFS:x rw
37 22 0:46 / /guest rw - virtiofs share rw
38 22 0:47 / /rootless rw - fuse.fuse-overlayfs fuse-overlayfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/store.db", None),
        ("/mnt/share/store.db", "nfs4"),
        ("/mnt/shared/store.db", None),
        ("/mnt/share/local/store.db", None),
        ("/mnt/with blank/store.db", "fuse.sshfs"),
        ("/over/store.db", "cifs"),
        ("/juice/store.db", "fuse.juicefs"),
        ("/guest/store.db", "virtiofs"),
        ("/rootless/store.db", None),
    ],
)
def test_network_filesystems_are_recognised_by_the_table_of_mounts(path: str, kind: str | None):
    assert network_filesystem(Path(path), MOUNTS) == kind


async def test_a_network_filesystem_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 0:1 / {tmp_path} rw - nfs4 server:/ rw\n")
    monkeypatch.setattr("neorion.keel.store.files._MOUNTS", table)
    error = await refused(tmp_path / "store.db")
    assert isinstance(error, Invalid)
    assert error.code == "store.network"


def test_an_engine_with_the_journal_reset_bug_is_refused():
    with pytest.raises(Terminal) as caught:
        sqlite_open._refuse_old_engine("3.40.1")
    assert caught.value.code == "store.engine"


@pytest.mark.parametrize(
    ("where", "package", "extra"),
    [("sqlite:///tmp/x.db", "apsw", "neorion[server]"), ("postgresql://x/y", "psycopg", "neorion[postgres]")],
)
def test_a_missing_extra_is_named(where: str, package: str, extra: str):
    script = f"""
import asyncio, sys
sys.modules[{package!r}] = None
from neorion.keel.clock import SystemClock
from neorion.keel.store import open_store
async def main():
    async with open_store({where!r}, migrations=[], clock=SystemClock()):
        pass
try:
    asyncio.run(main())
except Exception as error:
    print(error.code, error.hint)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"store.extra Run: pip install '{extra}'.\n"


async def test_damage_is_found_on_opening(tmp_path: Path):
    path = tmp_path / "store.db"
    async with opened(path) as store:
        await asyncio.gather(*(store.write(Pair(f"{n:04d}")) for n in range(500)))
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 3 + 64] = b"\xff" * 64
    path.write_bytes(content)
    error = await refused(path)
    assert isinstance(error, Terminal)
    assert error.code == "store.damaged"
    assert "backup" in error.hint


async def test_the_doctor_sees_a_reference_that_leads_nowhere(tmp_path: Path):
    async with opened(tmp_path / "store.db") as store:
        other = connect(tmp_path / "store.db")
        other.execute("INSERT INTO tag (note, name) VALUES (99, 'x')")
        other.close()
        (finding,) = await store.check()
        assert finding.code == "store.damaged"


async def test_concurrent_writes_share_one_commit(tmp_path: Path):
    async with opened(tmp_path / "store.db") as store:
        journal = tmp_path / "store.db-wal"

        async def grown_by(writes: list[Callable[[Tx], object]], *, together: bool) -> int:
            before = journal.stat().st_size
            if together:
                await asyncio.gather(*map(store.write, writes))
            else:
                for write in writes:
                    await store.write(write)
            return (journal.stat().st_size - before) // 4096

        alone = await grown_by([Pair(f"alone {n}") for n in range(50)], together=False)
        together = await grown_by([Pair(f"together {n}") for n in range(50)], together=True)
        assert alone >= 50, "a commit writes at least a page"
        assert together <= 8


async def test_a_query_does_not_wait_for_the_writer_and_sees_only_what_is_committed(tmp_path: Path):
    entered, leave = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        Pair("slow")(tx)
        entered.set()
        assert leave.wait(10)

    async with opened(tmp_path / "store.db") as store:
        await store.write(Pair("a"))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.write(slow))
            await asyncio.to_thread(entered.wait)
            assert await store.read(keys) == ["a"]
            leave.set()
        assert await store.read(keys) == ["a", "slow"]


async def test_a_query_sees_one_moment_however_long_it_takes(tmp_path: Path):
    entered, leave = threading.Event(), threading.Event()

    def slow(tx: Tx) -> tuple[list[str], list[str]]:
        first = keys(tx)
        entered.set()
        assert leave.wait(10)
        return first, keys(tx)

    async with opened(tmp_path / "store.db") as store:
        await store.write(Pair("a"))
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(store.read(slow))
            await asyncio.to_thread(entered.wait)
            await store.write(Pair("b"))
            leave.set()
        assert reading.result() == (["a"], ["a"])
        assert await store.read(keys) == ["a", "b"]


async def test_the_journal_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 20)
    async with opened(tmp_path / "store.db") as store:
        sizes = list[int]()
        for n in range(200):
            await store.write(Pair(f"{n:04d}"))
            sizes.append((tmp_path / "store.db-wal").stat().st_size // 4096)
        assert max(sizes) <= 40


async def test_a_reader_that_never_ends_stops_the_writers_before_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 10)
    monkeypatch.setattr(sqlite, "JOURNAL_PAGES_MAX", 40)
    monkeypatch.setattr(sqlite_open, "_BUSY_MS", 10)
    entered, leave = threading.Event(), threading.Event()

    def endless(tx: Tx) -> None:
        keys(tx)
        entered.set()
        assert leave.wait(20)

    async with opened(tmp_path / "store.db") as store:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.read(endless))
            await asyncio.to_thread(entered.wait)
            codes = [await code_of(store.write(Pair(f"{n:04d}"))) for n in range(60)]
            assert codes[:5] == [None] * 5
            assert codes[-5:] == ["store.busy"] * 5
            leave.set()
        await store.write(Pair("after"))
        assert "after" in await store.read(keys)


async def test_a_foreign_program_that_locks_the_file_makes_writers_wait_then_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite_open, "_BUSY_MS", 10)
    async with opened(tmp_path / "store.db") as store:
        shell = connect(tmp_path / "store.db")
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(Retry) as caught:
            await store.write(Pair("a"))
        assert caught.value.code == "store.busy"
        shell.execute("ROLLBACK")
        await store.write(Pair("a"))
        shell.close()


async def test_a_store_that_fails_tells_everybody_who_waits(tmp_path: Path):
    """With `fatal` that raises instead of ending the process, nobody is left waiting."""
    told = list[BaseException]()

    def fatal(cause: BaseException):
        told.append(cause)
        raise SystemExit(1)

    def spoil(_tx: Tx) -> None:
        """Puts something unwritable under the journal's descriptor: to SQLite, the disk has failed."""
        (journal,) = (
            fd for fd in Path("/proc/self/fd").iterdir() if fd.resolve() == tmp_path / "store.db-wal"
        )
        with Path("/dev/null").open("rb") as nothing:
            os.dup2(nothing.fileno(), int(journal.name))

    async with open_store(tmp_path / "store.db", migrations=ALL, clock=SystemClock(), fatal=fatal) as store:
        answers = await asyncio.gather(
            store.write(spoil),
            store.write(Pair("a")),
            store.write(Pair("b")),
            store.until_lost(),
            return_exceptions=True,
        )
        assert [getattr(answer, "code", answer) for answer in answers] == ["store.broken"] * 4
    assert len(told) == 1
