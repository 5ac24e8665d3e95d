"""What is true of PostgreSQL alone: leases, zombies, servers that go away."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, suppress

import psycopg
import pytest

from neorion.keel.base import Conflict, Duration, Error, Retry
from neorion.keel.clock import SystemClock
from neorion.keel.store import Store, Tx, open_store
from tests.keel.store.postgres_server import PostgresServer, postgres_server
from tests.keel.store.schema import ALL, Pair, keys
from tests.keel.store.writer import writer

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres")]

LEASE = Duration.of(seconds=2)


def opened(url: str, lease: Duration = LEASE) -> AbstractAsyncContextManager[Store]:
    return open_store(url, migrations=ALL, clock=SystemClock(), lease=lease)


@pytest.fixture
def own_server() -> Generator[PostgresServer]:
    """For tests that stop it."""
    with postgres_server() as running:
        yield running


async def test_concurrent_writes_share_one_transaction(server: PostgresServer):
    def transaction(tx: Tx) -> int:
        ((number,),) = tx.execute("SELECT CAST(txid_current() AS BIGINT)")
        return number

    async with opened(server.new_schema()) as store:
        numbers = await asyncio.gather(*(store.write(transaction) for _ in range(20)))
        assert len(set(numbers)) == 1


async def test_an_owner_that_was_stopped_for_too_long_is_fenced(server: PostgresServer):
    url = server.new_schema()
    async with writer("serve", url) as zombie:
        assert await zombie.ask("before") == "ack before"
        zombie.signal(signal.SIGSTOP)
        async with opened(url) as store:
            assert store.epoch == 2
            await store.write(Pair("successor"))
            zombie.signal(signal.SIGCONT)
            assert await zombie.ask("late") == "error store.fenced"
            assert await zombie.ask("later") == "error store.fenced"
            assert await store.read(keys) == ["before", "successor"]


async def test_an_owner_stopped_inside_a_transaction_does_not_block_its_successor_for_long(
    server: PostgresServer,
):
    url = server.new_schema()
    with psycopg.connect(url, autocommit=True) as zombie:
        async with opened(url) as store:
            await store.write(Pair("before"))
        # As the writer does: inside of a transaction, holding the row, then silence.
        zombie.execute("SET idle_in_transaction_session_timeout = '800ms'")
        zombie.execute("BEGIN")
        zombie.execute("SELECT 1 FROM store_owner FOR SHARE")
        async with opened(url) as store:
            await store.write(Pair("after"))
            with pytest.raises(psycopg.Error):
                zombie.execute("INSERT INTO pair VALUES ('zombie', 1)")
            assert await store.read(keys) == ["after", "before"]


async def test_a_crashed_owner_is_succeeded_when_its_lease_is_over(server: PostgresServer):
    url = server.new_schema()
    async with writer("serve", url) as crashed:
        assert await crashed.ask("before") == "ack before"
        crashed.kill()
        await crashed.wait()
    async with opened(url) as store:
        assert await store.read(keys) == ["before"]


async def test_a_living_owner_keeps_its_store_beyond_many_leases(server: PostgresServer):
    url = server.new_schema()
    async with opened(url, Duration.of(seconds=1)) as store:
        for _ in range(2):
            with pytest.raises(Conflict) as caught:
                async with opened(url, Duration.of(seconds=5)):
                    pass
            assert caught.value.code == "store.owned"
        await store.write(Pair("still here"))


async def test_an_idle_owner_learns_that_it_was_overtaken(server: PostgresServer):
    url = server.new_schema()
    async with opened(url, Duration.of(seconds=1)) as store:
        with psycopg.connect(url) as other:
            other.execute("UPDATE store_owner SET epoch = epoch + 1")
        with pytest.raises(Conflict) as caught:
            await store.until_lost()
        assert caught.value.code == "store.fenced"


async def test_a_server_that_crashes_under_load_loses_nothing_acknowledged(own_server: PostgresServer):
    url = own_server.new_schema()
    acknowledged, unknown = set[str](), set[str]()
    stop = asyncio.Event()

    async def write(store: Store, name: str) -> None:
        n = 0
        while not stop.is_set():
            n += 1
            try:
                acknowledged.add(await store.write(Pair(f"{name}-{n:05d}")))
            except Retry as error:
                assert error.code in {"store.unknown", "store.unreachable"}  # noqa: PT017 -- any other code is a bug
                unknown.add(f"{name}-{n:05d}")

    async with opened(url, Duration.of(seconds=9)) as store, asyncio.TaskGroup() as tasks:
        for letter in "abcdefgh":
            tasks.create_task(write(store, letter))
        for crashes in range(1, 3):
            while len(acknowledged) < 200 * crashes:
                await store.write(lambda tx: tx.execute("SELECT 1"))
            await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
            await asyncio.to_thread(own_server.start)
            with suppress(Retry):
                await store.write(Pair(f"barrier-{crashes}"))
        stop.set()
    assert unknown, "the crash was felt"
    async with opened(url) as store:
        found = set(await store.read(keys))
        assert found >= acknowledged
        assert found <= acknowledged | unknown | {"barrier-1", "barrier-2"}


async def test_a_connection_cut_during_the_commit_leaves_the_outcome_unknown(server: PostgresServer):
    url = server.new_schema()
    async with opened(url) as store:
        with psycopg.connect(url) as admin:
            admin.execute(
                "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS"
                " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"
            )
            admin.execute(
                "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION cut()"
            )
        answers = await asyncio.gather(
            code_of(store, Pair("together")),
            code_of(store, lambda tx: tx.execute("INSERT INTO note (id) VALUES (5)")),
        )
        assert answers == ["store.unknown", "store.unknown"]
        await store.write(Pair("after"))
        assert await store.read(keys) == ["after"]


async def test_a_connection_cut_before_the_commit_is_known_to_have_written_nothing(server: PostgresServer):
    url = server.new_schema()

    def cut(tx: Tx) -> None:
        Pair("cut")(tx)
        tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    async with opened(url) as store:
        assert (
            await asyncio.gather(code_of(store, Pair("together")), code_of(store, cut))
            == ["store.unreachable"] * 2
        )
        await store.write(Pair("after"))
        assert await store.read(keys) == ["after"]


async def code_of(store: Store, change: Callable[[Tx], object]) -> str:
    try:
        await store.write(change)
    except Error as error:
        return error.code
    return "acknowledged"


async def test_a_table_locked_by_another_program_costs_one_caller_not_the_store(server: PostgresServer):
    url = server.new_schema()
    async with opened(url, Duration.of(seconds=1)) as store:
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE pair IN ACCESS EXCLUSIVE MODE")
            answers = await asyncio.gather(
                code_of(store, Pair("blocked")),
                code_of(store, lambda tx: tx.execute("INSERT INTO note (id) VALUES (5)")),
            )
            assert answers == ["store.busy", "acknowledged"]
            other.rollback()
        await store.write(Pair("free"))


async def test_a_lease_row_locked_by_another_program_is_waited_out(server: PostgresServer):
    url = server.new_schema()
    async with opened(url, Duration.of(seconds=1)) as store:
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM store_owner FOR UPDATE")
            for n in range(3):
                assert await code_of(store, Pair(str(n))) == "store.busy"
            other.rollback()
        await store.write(Pair("free"))
        assert await store.read(keys) == ["free"]


async def test_a_server_that_could_lose_commits_is_refused(server: PostgresServer):
    url = server.new_schema()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET full_page_writes = off")
        admin.execute("SELECT pg_reload_conf()")
    try:
        with pytest.raises(Error) as caught:
            async with opened(url):
                pass
        assert caught.value.code == "store.unsafe"
        assert "full_page_writes" in caught.value.hint
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM RESET full_page_writes")
            admin.execute("SELECT pg_reload_conf()")


async def test_a_schema_of_another_program_is_left_alone(server: PostgresServer):
    url = server.new_schema()
    with psycopg.connect(url) as other:
        other.execute("CREATE TABLE theirs (x INT)")
    with pytest.raises(Error) as caught:
        async with opened(url):
            pass
    assert caught.value.code == "store.foreign"


async def test_a_schema_that_does_not_exist_is_not_made_up(server: PostgresServer):
    with pytest.raises(Error) as caught:
        async with opened(server.new_schema() + "_but_another"):
            pass
    assert caught.value.code == "store.schema"


async def test_a_server_that_is_not_there_is_said_to_be_unreachable():
    with pytest.raises(Retry) as caught:
        async with opened("postgresql://nobody:secret@127.0.0.1:1/none"):
            pass
    assert caught.value.code == "store.unreachable"
    assert "secret" not in str(caught.value) + caught.value.hint
