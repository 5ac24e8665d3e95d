"""A cluster in numbers."""

from dataclasses import dataclass
from typing import Final

import anyio

from neorion.iris.cli.humanize import ago, counts, moment
from neorion.iris.client import AsyncIrisClient
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration, Instant
from neorion.keel.cli.kit import Column, Table
from neorion.keel.clock import Clock

# Workers start in a second or two; without one the cluster still takes jobs, so it is no error.
_WORKER_MOST: Final = Duration.of(seconds=15)
_LOOK_EVERY: Final = Duration.of(ms=100)


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """What a controller has, by state."""

    address: str
    version: str
    started: Instant | None
    jobs: dict[str, int]
    tasks: dict[str, int]
    workers: dict[str, int]
    slices: dict[str, int]

    @classmethod
    def of(cls, address: str, answer: pb.StatusResponse) -> "StatusRecord":
        return cls(
            address=address,
            version=answer.version,
            started=moment(answer.started_ms),
            jobs=dict(answer.jobs),
            tasks=dict(answer.tasks),
            workers=dict(answer.workers),
            slices=dict(answer.slices),
        )


def status_table(clock: Clock) -> Table[StatusRecord]:
    return Table(
        (
            Column("CONTROLLER", lambda it: it.address),
            Column("VERSION", lambda it: it.version),
            Column("STARTED", lambda it: ago(clock.now(), it.started)),
            Column("STARTED AT", lambda it: it.started),
            Column("JOBS", lambda it: counts(it.jobs)),
            Column("TASKS", lambda it: counts(it.tasks)),
            Column("WORKERS", lambda it: counts(it.workers)),
            Column("SLICES", lambda it: counts(it.slices)),
        ),
        name=lambda it: it.address,
    )


async def first_worker(client: AsyncIrisClient, clock: Clock) -> str:
    """Returns when the cluster can run something; or when that takes too long, with what is known of it."""
    trouble = ""
    with anyio.move_on_after(_WORKER_MOST.seconds):
        while not (await client.cluster.status(pb.StatusRequest())).workers.get("ready"):
            trouble = next((piece.message for piece in await client.slices() if piece.message), trouble)
            await clock.sleep(_LOOK_EVERY)
        return ""
    return trouble or "none has said why"
