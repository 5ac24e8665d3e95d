"""Loads the state from the store at the controller's start."""

from collections.abc import AsyncIterator

from neorion.iris.model import TaskReason
from neorion.iris.model.record import Attempt, Job, Slice, Task, Worker
from neorion.iris.state.cluster_state import ClusterState
from neorion.iris.state.codec import R, decode
from neorion.keel.store import Store

# Rows per query. They are in memory twice until they are indexed.
PAGE_ROWS = 5_000


async def load(store: Store, cluster: ClusterState) -> None:
    async for job in _all(store, "job", Job):
        cluster.index_job(job)
    async for worker in _all(store, "worker", Worker):
        cluster.index_worker(worker)
    async for slice_ in _all(store, "slice", Slice):
        cluster.slices[slice_.id] = slice_
    # Rows are in the order of their keys, so the tasks of a job are in the order of their indexes.
    async for task in _all(store, "task", Task):
        cluster.index_task(task)
    async for attempt in _all(store, "attempt", Attempt):
        if not attempt.state.ended:
            cluster.index_attempt(attempt)
        elif attempt.ending.cause is TaskReason.NO_ROOM and not cluster.jobs[attempt.job].state.ended:
            cluster.avoid_worker(attempt.job, attempt.worker)


async def attempts_of(store: Store, job: str, index: int) -> list[Attempt]:
    """Attempts of a task, the oldest first. Ended ones are only in the store."""
    key = f"{job}/{index:08d}"
    rows = await store.read(
        lambda tx: tx.execute(
            "SELECT body FROM attempt WHERE id >= ? AND id < ? ORDER BY id", (f"{key}/", f"{key}0")
        )
    )
    return [decode(Attempt, bytes(body)) for (body,) in rows]


async def attempts_of_job(store: Store, job: str) -> list[Attempt]:
    """Attempts of all tasks of a job."""
    rows = await store.read(
        lambda tx: tx.execute("SELECT body FROM attempt WHERE id >= ? AND id < ?", (f"{job}/", f"{job}0"))
    )
    return [decode(Attempt, bytes(body)) for (body,) in rows]


async def _all(store: Store, table: str, kind: type[R]) -> AsyncIterator[R]:
    query = f"SELECT id, body FROM {table} WHERE id > ? ORDER BY id LIMIT {PAGE_ROWS}"  # noqa: S608 -- our own table names
    last = ""
    while rows := await store.read(lambda tx, last=last: tx.execute(query, (last,))):
        for _, body in rows:
            yield decode(kind, bytes(body))
        last = str(rows[-1][0])
