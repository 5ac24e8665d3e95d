"""`python -m neorion.iris.adapters.runtimes.container.runner`, with its worker's address and token in the environment."""

import os
from pathlib import Path

import anyio

from neorion.iris.adapters.runtimes.container.messages import (
    ADDRESS_ENV,
    ATTEMPT_ENV,
    FOLDER_ENV,
    HOST_ENV,
    LEADER_ENV,
    RUNNER_FOLDER,
    TOKEN_ENV,
)
from neorion.iris.adapters.runtimes.container.runner.attempt import RunnerAttempt
from neorion.iris.adapters.runtimes.container.runner.order_files import OrderFiles
from neorion.iris.adapters.runtimes.container.runner.runner import AttemptRunner, WorkerAddress
from neorion.iris.adapters.runtimes.container.verdict import record
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import AttemptId
from neorion.keel.clock import SystemClock, system_rng

# Engines read a container's end from this file.
_LAST_WORDS = Path("/dev/termination-log")


async def _main() -> None:
    host, _, port = os.environ[ADDRESS_ENV].rpartition(":")
    worker = WorkerAddress(host, int(port), os.environ[TOKEN_ENV])
    clock = SystemClock()
    own = {name: os.environ[name] for name in (HOST_ENV,) if os.environ.get(name)}
    folder = Path(os.environ.get(FOLDER_ENV, RUNNER_FOLDER))
    files = OrderFiles(folder / "order", own)
    runtime = ProcessRuntime(folder / "runtime", clock)
    leader = os.environ.get(LEADER_ENV, "")
    attempt = RunnerAttempt(AttemptId(os.environ[ATTEMPT_ENV]), files, runtime, clock, leader)
    await AttemptRunner(attempt, worker, clock, system_rng()).run()
    if attempt.end is not None and _LAST_WORDS.exists():
        _LAST_WORDS.write_bytes(record(attempt.end))


if __name__ == "__main__":
    anyio.run(_main)
