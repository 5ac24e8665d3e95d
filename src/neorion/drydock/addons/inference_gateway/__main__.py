"""`python -m neorion.drydock.addons.inference_gateway FOLDER`: keeps the configuration of the cluster's Envoy."""

import sys
from pathlib import Path

from neorion.drydock.addons.inference_gateway.controller import GatewayController
from neorion.drydock.addons.inference_gateway.deploy import NAME, folder_of
from neorion.drydock.binaries import BinaryCache
from neorion.drydock.clusters import ClusterManager
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup


def main() -> None:
    setup(LogFormat.JSON)
    folder, clock = Path(sys.argv[1]), SystemClock()
    layout = ClusterManager(folder.parent, BinaryCache.of(), clock).find(folder.name).layout
    address = str(layout.addresses.gateway)

    async def run(crew: Supervisor) -> None:
        kubeconfig = read_kubeconfig([layout.kubeconfig_of(NAME)])
        async with connect(kubeconfig.cluster(), f"drydock-{NAME}") as api:
            controller = GatewayController(api, folder_of(layout), address, clock, system_rng())
            await controller.operator.run(crew.stopping)

    run_process(run)


if __name__ == "__main__":
    main()
