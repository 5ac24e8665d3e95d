"""`python -m neorion.drydock.addons.custom_metrics FOLDER`: serves the metrics of the cluster in there."""

import sys
from pathlib import Path

from neorion.drydock.addons.custom_metrics import NAME
from neorion.drydock.addons.custom_metrics.server import serving
from neorion.drydock.api import Api
from neorion.drydock.binaries import BinaryCache
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.layout import PortOffset
from neorion.keel.clock import SystemClock
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup


def main() -> None:
    setup(LogFormat.JSON)
    folder, clock = Path(sys.argv[1]), SystemClock()
    cluster = ClusterManager(folder.parent, BinaryCache.of(), clock).find(folder.name)
    address = (str(cluster.layout.addresses.host), cluster.layout.port(PortOffset.CUSTOM_METRICS))
    kubeconfig = cluster.layout.kubeconfig_of(NAME)

    async def run(crew: Supervisor) -> None:
        async with (
            connect(read_kubeconfig([kubeconfig]).cluster(), f"drydock-{NAME}") as client,
            serving(Api(client.transport), clock, cluster.pki, address),
        ):
            await crew.stopping.wait()

    run_process(run)


if __name__ == "__main__":
    main()
