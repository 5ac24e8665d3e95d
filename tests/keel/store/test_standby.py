"""Owners that follow each other: the same of a real PostgreSQL and of the server that simulations use."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import anyio
import psycopg
import pytest

from neorion.keel.base import Conflict, Duration, Error, Retry
from neorion.keel.clock import SystemClock
from neorion.keel.store import MemoryServer, await_store, open_store
from neorion.keel.store.memory import MemoryLink
from tests.keel.store.postgres_server import PostgresServer
from tests.keel.store.schema import ALL, Pair, keys

pytestmark = pytest.mark.anyio

LEASE = Duration.of(seconds=1)
CLOCK = SystemClock()
Opened = tuple[str | MemoryLink, Callable[[], AbstractContextManager[None]]]


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def place(request: pytest.FixtureRequest) -> Opened:
    """A database, and how its first owner loses sight of it."""
    if request.param == "memory":
        return _in_memory()
    server: PostgresServer = request.getfixturevalue("server")
    url = server.new_schema()

    @contextmanager
    def locked() -> Generator[None]:
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM store_owner FOR UPDATE")
            yield
            other.rollback()

    return url, locked


def _in_memory() -> Opened:
    cut = False

    @contextmanager
    def away() -> Generator[None]:
        nonlocal cut
        cut = True
        yield
        cut = False

    return MemoryServer(CLOCK).link("one", lambda: not cut), away


async def test_a_standby_hears_who_owns_the_store_and_follows_at_its_end(place: Opened):
    where, _ = place
    heard: list[Error] = []
    async with anyio.create_task_group() as group:
        ended = anyio.Event()
        owned = anyio.Event()

        async def own() -> None:
            async with open_store(where, migrations=ALL, clock=CLOCK, lease=LEASE) as store:
                await store.write(Pair("first"))
                owned.set()
                await ended.wait()

        def on_wait(why: Error) -> None:
            heard.append(why)
            ended.set()

        group.start_soon(own)
        await owned.wait()
        async with await_store(where, on_wait, migrations=ALL, clock=CLOCK, lease=LEASE) as store:
            assert store.epoch == 2
            assert await store.read(keys) == ["first"]
    assert {(type(one), one.code) for one in heard} == {(Conflict, "store.owned")}


async def test_who_cannot_renew_is_unsure_until_it_can_and_is_the_owner_still(place: Opened):
    where, lose = place
    async with open_store(where, migrations=ALL, clock=CLOCK, lease=LEASE) as store:
        store.check_lease()
        with lose():
            while not _unsure(store.check_lease):
                await CLOCK.sleep(Duration.of(ms=20))
        while _unsure(store.check_lease):
            await CLOCK.sleep(Duration.of(ms=20))
        await store.write(Pair("after"))
        assert store.epoch == 1


def _unsure(check: Callable[[], None]) -> bool:
    try:
        check()
    except Retry as error:
        assert error.code == "store.standby"  # noqa: PT017 -- any other code is a bug
        return True
    return False


async def test_an_owner_is_unsure_before_another_may_follow(place: Opened):
    """Its own clock ends the lease first: it is unsure while the server still refuses everybody else."""
    where, lose = place
    async with open_store(where, migrations=ALL, clock=CLOCK, lease=Duration.of(seconds=4)) as store:
        with lose():
            while not _unsure(store.check_lease):
                await CLOCK.sleep(Duration.of(ms=20))
            left = _left(where)
        assert left > 0


def _left(where: str | MemoryLink) -> float:
    """The seconds for which the server still holds the lease."""
    if isinstance(where, MemoryLink):
        return where.server.lease.until - CLOCK.monotonic()
    with psycopg.connect(where) as other:
        found = other.execute(
            "SELECT extract(epoch FROM until - clock_timestamp())::float8 FROM store_owner"
        ).fetchone()
    assert found is not None
    return found[0]
