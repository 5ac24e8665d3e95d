"""The service for those who run the cluster."""

from collections import Counter
from importlib.metadata import version

from msgspec.structs import replace

from neorion.iris.model import WorkerId, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_connect import ClusterService
from neorion.iris.serve.desk import Desk
from neorion.keel.base import NotFound, did_you_mean


class Cluster(ClusterService):
    """ClusterService over one controller."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._book = desk.deck.book

    async def status(self, request: pb.StatusRequest, ctx: object) -> pb.StatusResponse:
        book = self._book
        tasks = Counter[str]()
        for counts in book.counts.values():
            tasks.update({state.value: count for state, count in counts.items() if count})
        return pb.StatusResponse(
            version=version("neorion"),
            started_ms=wire.ms(self._desk.started),
            jobs=dict(Counter(job.state.value for job in book.jobs.values())),
            tasks=dict(tasks),
            workers=dict(Counter(worker.state.value for worker in book.workers.values())),
            slices=dict(Counter(piece.state.value for piece in book.slices.values())),
        )

    async def workers(self, request: pb.WorkersRequest, ctx: object) -> pb.WorkersResponse:
        return pb.WorkersResponse(
            workers=[
                pb.Worker(
                    id=worker.id,
                    slice=worker.slice,
                    host=worker.host,
                    state=worker.state,
                    draining=worker.draining,
                    total=wire.resources_message(worker.total),
                    free=wire.resources_message(self._book.free(worker.id)),
                    attributes=worker.attributes,
                    tasks=len(self._book.placed[worker.id]),
                    joined_ms=wire.ms(worker.joined),
                )
                for worker in self._book.workers.values()
            ]
        )

    async def slices(self, request: pb.SlicesRequest, ctx: object) -> pb.SlicesResponse:
        homes: dict[str, list[str]] = {}
        for worker in self._book.workers.values():
            homes.setdefault(worker.slice, []).append(worker.id)
        return pb.SlicesResponse(
            slices=[
                pb.Slice(
                    id=piece.id,
                    group=piece.group,
                    state=piece.state,
                    since_ms=wire.ms(piece.since),
                    message=piece.message,
                    workers=homes.get(piece.id, []),
                )
                for piece in self._book.slices.values()
            ]
        )

    async def drain(self, request: pb.DrainRequest, ctx: object) -> pb.DrainResponse:
        worker = self._book.workers.get(WorkerId(request.worker))
        if worker is None:
            raise NotFound(
                "iris.no_worker",
                f"There is no worker {request.worker[:80]}.",
                hint=did_you_mean(request.worker, self._book.workers) or "see them with: iris worker list",
            )
        self._book.put_worker(replace(worker, draining=not request.undo))
        self._desk.deck.wake()
        await self._desk.deck.journal.durable()
        return pb.DrainResponse()
