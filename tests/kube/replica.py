"""One replica of the widget operator as a process of its own: `python replica.py KUBECONFIG NAMESPACE IDENTITY`."""

import sys
from pathlib import Path

from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.kube.control import TENURE
from neorion.keel.run import Supervisor, run_process
from tests.keel.kube.control.widgets import Surroundings, WidgetOperator


async def main(crew: Supervisor) -> None:
    kubeconfig, namespace, identity = sys.argv[1:]
    async with connect(read_kubeconfig([Path(kubeconfig)]).cluster(), "widgets/1") as api:
        around = Surroundings(api, SystemClock(), system_rng(), identity)
        await WidgetOperator(around, tenure=TENURE, namespace=namespace).operator.run(crew.stopping)


if __name__ == "__main__":
    run_process(main)
