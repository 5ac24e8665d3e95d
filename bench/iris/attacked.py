"""1,000 workers while strangers and one user's long polls attack the controller: no lease is lost."""

from collections import Counter
from pathlib import Path

import anyio
from anyio import to_thread

from bench.attackers import attacked, compare, raise_files
from bench.iris.workers import Controller, Fleet, controller
from bench.kit import Report
from neorion.iris.client import IrisClient
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import connect

WORKERS = 1_000
SPAN_S = 30.0


def waiting_job(one: Controller, token: str) -> str:
    """A job that fits the scale group, which never gets a machine: a poll for it takes as long as it may."""
    with IrisClient.remote(one.address, token=token) as client:
        return client.submit("true", "waits", resources={"cpu": 4}).name


def workers(one: Controller, token: str) -> Counter[str]:
    """How many workers are in each state."""
    with IrisClient.remote(one.address, token=token) as client:
        return Counter(worker.state for worker in client.workers())


async def measured(one: Controller, token: str, job: str) -> tuple[list[float], list[float]]:
    """A worker whose lease is lost raises an error here."""
    worker = (one.folder / "worker.token").read_text()
    quiet, beaten = list[float](), list[float]()
    async with connect(one.address, ids=SystemIds(), token=worker) as channel:
        fleet = Fleet(one.address, channel)
        async with anyio.create_task_group() as group:
            for number in range(WORKERS):
                await group.start(fleet.live, number)
            await anyio.sleep(3)
            fleet.took.clear()
            await anyio.sleep(SPAN_S)
            quiet = fleet.took.copy()
            async with attacked(one.address, token, job):
                fleet.took.clear()
                await anyio.sleep(SPAN_S)
                beaten = fleet.took.copy()
            states = await to_thread.run_sync(workers, one, token)
            assert states.total() == WORKERS, states
            print(f"workers after the attack: {dict(states)}", flush=True)
            group.cancel_scope.cancel()
    return quiet, beaten


def run(report: Report) -> None:
    raise_files()
    with controller() as one:
        token = Path(one.folder / "admin.token").read_text()
        quiet, beaten = anyio.run(measured, one, token, waiting_job(one, token))
    compare(report, f"{WORKERS:,} workers", quiet, beaten)
