"""`python -m neorion.drydock.coreweave KUBECONFIG BOOT_SECONDS`: the process that plays CoreWeave."""

import sys
from pathlib import Path

from neorion.drydock.coreweave.player import Player
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.run import Crew, run_process
from neorion.keel.telemetry.setup import Form, setup


def main() -> None:
    setup(Form.JSON)
    kubeconfig, boot = Path(sys.argv[1]), Duration.of(seconds=float(sys.argv[2]))

    async def run(crew: Crew) -> None:
        async with connect(read_kubeconfig([kubeconfig]).cluster(), "drydock-coreweave") as api:
            await Player(api, boot, SystemClock(), system_rng()).operator.run(crew.stopping)

    run_process(run)


if __name__ == "__main__":
    main()
