"""The store against a plain dictionary: whatever happens, it holds what was acknowledged and nothing half."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from neorion.keel.clock import VirtualClock
from neorion.keel.store import InlineExecutor, MemoryDisk, Migration, Store, Tx, open_store, restore

TABLE = Migration(1, "kv", "CREATE TABLE kv (k INTEGER PRIMARY KEY, v INTEGER NOT NULL)")
PUT = "INSERT INTO kv (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
KEYS = st.integers(min_value=0, max_value=8)
# A few puts and deletes, and whether the change gives up at its end.
CHANGE = st.tuples(
    st.lists(st.tuples(KEYS, st.none() | st.integers(min_value=0, max_value=99)), max_size=4), st.booleans()
)


class GivesUp(Exception):
    pass


class StoreMachine(RuleBasedStateMachine):
    """One owner after another of one store; the model is a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = TemporaryDirectory()
        self.backups = 0
        self.disk: MemoryDisk | Path = MemoryDisk()
        self.model = dict[int, int]()
        self.saved: dict[int, int] | None = None
        self.epoch = 0
        self.owner: asyncio.Task[None]
        self.closing: asyncio.Event
        self.store: Store
        self.open()

    def open(self) -> None:
        """An owner is a task: it opens the store, keeps it until it is told to close, and closes it."""
        opened: asyncio.Future[Store] = self.loop.create_future()
        self.closing = closing = asyncio.Event()

        async def own() -> None:
            async with open_store(
                self.disk, migrations=[TABLE], clock=VirtualClock(lambda: 0.0), lane=InlineExecutor()
            ) as store:
                opened.set_result(store)
                await closing.wait()

        self.owner = self.loop.create_task(own())
        self.store = self.loop.run_until_complete(opened)
        assert self.store.epoch > self.epoch, "epochs only grow"
        self.epoch = self.store.epoch

    def close(self) -> None:
        self.closing.set()
        self.loop.run_until_complete(self.owner)

    def apply(self, steps: list[tuple[int, int | None]]) -> None:
        for key, value in steps:
            if value is None:
                self.model.pop(key, None)
            else:
                self.model[key] = value

    @rule(changes=st.lists(CHANGE, min_size=1, max_size=6))
    def write_together(self, changes: list[tuple[list[tuple[int, int | None]], bool]]) -> None:
        def change(tx: Tx, steps: list[tuple[int, int | None]], *, gives_up: bool) -> int:
            for key, value in steps:
                tx.execute("DELETE FROM kv WHERE k = ?", (key,)) if value is None else tx.execute(
                    PUT, (key, value)
                )
            if gives_up:
                raise GivesUp
            return len(steps)

        async def all_at_once() -> list[int | BaseException]:
            writes = (
                self.store.write(lambda tx, s=steps, g=gives_up: change(tx, s, gives_up=g))
                for steps, gives_up in changes
            )
            return await asyncio.gather(*writes, return_exceptions=True)

        for (steps, gives_up), answer in zip(
            changes, self.loop.run_until_complete(all_at_once()), strict=True
        ):
            if gives_up:
                assert isinstance(answer, GivesUp)
            else:
                assert answer == len(steps)
                self.apply(steps)

    @rule()
    def restart(self) -> None:
        self.close()
        self.open()

    @precondition(lambda self: isinstance(self.disk, MemoryDisk))
    @rule(steps=CHANGE)
    def crash_with_a_write_waiting(self, steps: tuple[list[tuple[int, int | None]], bool]) -> None:
        disk = self.disk
        assert isinstance(disk, MemoryDisk)

        async def wait_and_crash() -> None:
            write = self.loop.create_task(
                self.store.write(lambda tx: [tx.execute(PUT, (k, 1)) for k, _ in steps[0]])
            )
            self.loop.call_soon(disk.crash)
            await asyncio.wait([write])
            assert write.exception() is not None, "what was not committed is not acknowledged"

        self.loop.run_until_complete(wait_and_crash())
        self.close()
        self.open()

    @rule()
    def back_up(self) -> None:
        self.backups += 1
        self.loop.run_until_complete(self.store.backup(Path(self.folder.name) / f"{self.backups}.db"))
        self.saved = dict(self.model)

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore_the_last_backup(self) -> None:
        self.close()
        backup = Path(self.folder.name) / f"{self.backups}.db"
        target = Path(self.folder.name) / "restored"
        self.loop.run_until_complete(restore(backup, target, migrations=[TABLE], replace=True))
        self.disk, self.model = target, dict(self.saved or {})
        self.open()

    @invariant()
    def the_store_is_the_model(self) -> None:
        rows = self.loop.run_until_complete(
            self.store.read(lambda tx: tx.execute("SELECT k, v FROM kv ORDER BY k"))
        )
        assert dict(rows) == self.model

    def teardown(self) -> None:
        self.close()
        self.loop.close()
        self.folder.cleanup()


StoreMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestStoreIsADictionary = StoreMachine.TestCase
