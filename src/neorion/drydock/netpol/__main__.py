"""`python -m neorion.drydock.netpol KUBECONFIG FOLDER SLOT`: the process that enforces a cluster's policies."""

import sys
from pathlib import Path

from neorion.drydock.layout import Layout
from neorion.drydock.netpol.enforcer import Enforcer
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup


def main() -> None:
    setup(LogFormat.JSON)
    kubeconfig, folder, slot = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    layout = Layout(folder, slot, networked=True)

    async def run(crew: Supervisor) -> None:
        async with connect(read_kubeconfig([kubeconfig]).cluster(), "drydock-netpol") as api:
            await Enforcer(api, layout, SystemClock(), system_rng()).operator.run(crew.stopping)

    run_process(run)


if __name__ == "__main__":
    main()
