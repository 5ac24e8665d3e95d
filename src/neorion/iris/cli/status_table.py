"""Record and table of a cluster's status."""

from dataclasses import dataclass
from typing import Final

import anyio

from neorion.iris.cli.humanize import counts
from neorion.iris.client import AsyncIrisClient
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration, Instant
from neorion.keel.cli.kit import Column, Table
from neorion.keel.cli.kit.humanize import ago, instant_of_ms
from neorion.keel.clock import Clock

# Workers start within two seconds. A cluster without workers accepts jobs, so it is not an error.
_WORKER_MOST: Final = Duration.of(seconds=15)
_POLL_EVERY: Final = Duration.of(ms=100)


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """Number of jobs, tasks, workers and slices by state."""

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
            started=instant_of_ms(answer.started_ms),
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
    """Waits for the first worker. Returns "", or after a timeout the last known problem."""
    trouble = ""
    with anyio.move_on_after(_WORKER_MOST.seconds):
        while not (await client.cluster.status(pb.StatusRequest())).workers.get("ready"):
            trouble = next((slice_.message for slice_ in await client.slices() if slice_.message), trouble)
            await clock.sleep(_POLL_EVERY)
        return ""
    return trouble or "the cause is unknown"
