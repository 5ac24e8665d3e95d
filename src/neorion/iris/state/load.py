"""Fills the book from the store, once, at the controller's start."""

from neorion.iris.model.record import Attempt, Job, Slice, Task, Worker
from neorion.iris.state.book import Book
from neorion.iris.state.codec import R, decode
from neorion.keel.store import Store


async def load(store: Store, book: Book) -> None:
    for job in await _all(store, "job", Job):
        book.index_job(job)
    for worker in await _all(store, "worker", Worker):
        book.index_worker(worker)
    for piece in await _all(store, "slice", Slice):
        book.slices[piece.id] = piece
    # Rows come in the order of their keys, so a job's tasks come in the order of their indexes.
    for task in await _all(store, "task", Task):
        book.index_task(task)
    for attempt in await _all(store, "attempt", Attempt):
        if not attempt.state.ended:
            book.index_attempt(attempt)


async def attempts_of(store: Store, job: str, index: int) -> list[Attempt]:
    """Every attempt at a task, the oldest first; the ended ones are in the store alone."""
    key = f"{job}/{index:08d}"
    rows = await store.read(
        lambda tx: tx.execute(
            "SELECT body FROM attempt WHERE id >= ? AND id < ? ORDER BY id", (f"{key}/", f"{key}0")
        )
    )
    return [decode(Attempt, bytes(body)) for (body,) in rows]


async def attempts_of_job(store: Store, job: str) -> list[Attempt]:
    """Every attempt at every task of a job."""
    rows = await store.read(
        lambda tx: tx.execute("SELECT body FROM attempt WHERE id >= ? AND id < ?", (f"{job}/", f"{job}0"))
    )
    return [decode(Attempt, bytes(body)) for (body,) in rows]


async def _all(store: Store, table: str, kind: type[R]) -> list[R]:
    rows = await store.read(lambda tx: tx.execute(f"SELECT body FROM {table} ORDER BY id"))  # noqa: S608 -- our own table names
    return [decode(kind, bytes(body)) for (body,) in rows]
