"""`python -m neorion.drydock.storage KUBECONFIG FOLDER`: the process that serves a cluster's claims."""

import sys
from pathlib import Path

from neorion.drydock.storage.provisioner import Provisioner
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup


def main() -> None:
    setup(LogFormat.JSON)
    kubeconfig, folder = Path(sys.argv[1]), Path(sys.argv[2])

    async def run(crew: Supervisor) -> None:
        async with connect(read_kubeconfig([kubeconfig]).cluster(), "drydock-storage") as api:
            await Provisioner(api, folder, SystemClock(), system_rng()).operator.run(crew.stopping)

    run_process(run)


if __name__ == "__main__":
    main()
