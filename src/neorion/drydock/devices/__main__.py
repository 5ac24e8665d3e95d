"""`python -m neorion.drydock.devices NODE_FOLDER`: the device plugin of one node, started by its boot script."""

import sys
from pathlib import Path

from neorion.drydock.devices.device_state import DeviceTable
from neorion.drydock.devices.plugin import Plugin
from neorion.keel.clock import SystemClock
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup


def main() -> None:
    setup(LogFormat.JSON)
    plugin = Plugin(DeviceTable(Path(sys.argv[1])), SystemClock())

    async def run(crew: Supervisor) -> None:
        crew.spawn("listen", plugin.listen)
        await plugin.offer()

    run_process(run)


if __name__ == "__main__":
    main()
