"""`python -m neorion.drydock.coreweave FOLDER BOOT_SECONDS`: the process that plays CoreWeave for the cluster in there."""

import sys
from pathlib import Path

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.coreweave.deploy import WHO
from neorion.drydock.coreweave.rate_limit import limit_rate
from neorion.drydock.coreweave.real_nodes import RealNodeProvisioner
from neorion.drydock.coreweave.simulator import CoreWeaveSimulator
from neorion.drydock.layout import PortOffset
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup


def main() -> None:
    setup(LogFormat.JSON)
    folder, boot = Path(sys.argv[1]), Duration.of(seconds=float(sys.argv[2]))
    clock = SystemClock()
    yard = ClusterManager(folder.parent, BinaryCache.of(), clock)
    real = RealNodeProvisioner(lambda: yard.find(folder.name), clock)
    cluster = yard.find(folder.name)
    kubeconfig, port = cluster.layout.kubeconfig_of(WHO), cluster.layout.port(PortOffset.COREWEAVE_WEBHOOK)

    async def run(crew: Supervisor) -> None:
        async with (
            limit_rate(port, cluster.pki.certificate(WHO), cluster.pki.key(WHO), clock),
            connect(read_kubeconfig([kubeconfig]).cluster(), "drydock-coreweave") as api,
        ):
            await real.sweep(api)
            await CoreWeaveSimulator(api, boot, clock, system_rng(), real).operator.run(crew.stopping)

    run_process(run)


if __name__ == "__main__":
    main()
