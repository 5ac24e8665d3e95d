"""The work of `navarch serve`."""

import os
from pathlib import Path

import uvloop

from neorion.keel.cli.kit import Output
from neorion.keel.run import Supervisor, run_process
from neorion.keel.telemetry.setup import LogFormat, setup
from neorion.navarch.app.reload import ConfigSource, Reloader
from neorion.navarch.app.server import serving


def serve(out: Output, config: Path, log: str) -> None:
    setup(LogFormat(log))
    source = ConfigSource(config, out.env)
    file = source.read()

    async def main(crew: Supervisor) -> None:
        async with serving(file, config.parent, out.env) as running:
            reloader = Reloader(source, file, running.plane)
            crew.spawn("navarch.reload", lambda: reloader.run(crew))
            out.text(f"{running.address}\n")
            await crew.stopping.wait()

    # Only its own user may read its files.
    os.umask(0o077)
    run_process(main, loop_factory=uvloop.new_event_loop)
