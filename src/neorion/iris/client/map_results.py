"""Chunks of the items of a `map`, and the results of each chunk."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from neorion.iris.client.options import TASKS_WITH_ARGS_MAX
from neorion.iris.client.result import Fetch, JobFailed, failure_of, value_of_task
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Invalid

# Enough chunks to share the work evenly, few enough that overhead stays small.
CHUNKS: Final = 64


@dataclass(frozen=True, slots=True)
class Chunks:
    """Assignment of items to tasks, in chunks of one size."""

    total: int
    size: int

    @classmethod
    def of(cls, total: int, size: int) -> "Chunks":
        """Checks the size of a chunk. Refused if it is invalid or gives more tasks than one submission takes."""
        least = -(-total // TASKS_WITH_ARGS_MAX)
        if size < 0 or 0 < size < least:
            raise Invalid(
                "iris.chunk",
                f"{total} items cannot be split into chunks of {size}.",
                hint=f"Set chunk to {max(1, least)} or more, or omit it.",
            )
        return cls(total, size or max(1, -(-total // CHUNKS)))

    def __len__(self) -> int:
        return (self.total + self.size - 1) // self.size

    def __iter__(self) -> Iterator[range]:
        return map(self.items, range(len(self)))

    def items(self, task: int) -> range:
        start = task * self.size
        return range(start, min(start + self.size, self.total))


@dataclass(frozen=True, slots=True)
class MapResults:
    """Reader of the results of a map. With `keep_errors` an item's exception is its value."""

    chunks: Chunks
    fetch: Fetch
    keep_errors: bool

    async def of(
        self, ends: AsyncIterator[tuple[pb.Job, pb.Task, bytes]]
    ) -> AsyncGenerator[list[tuple[int, Any]]]:
        """Yields the values of each task as it ends, with the numbers of their items."""
        async for job, task, small in ends:
            numbers = self.chunks.items(task.index)
            if task.state == "succeeded":
                values = await value_of_task(task, small, self.fetch)
                yield list(zip(numbers, values, strict=True))
                continue
            error = await self._error(job, task, small, numbers)
            if not self.keep_errors:
                raise error
            yield [(number, error) for number in numbers]

    async def _error(self, job: pb.Job, task: pb.Task, small: bytes, numbers: range) -> BaseException:
        error = await failure_of(job, task, small, self.fetch)
        if isinstance(error, JobFailed):
            error.add_note(f"It had the items {numbers.start} to {numbers.stop - 1} of the map.")
        return error
