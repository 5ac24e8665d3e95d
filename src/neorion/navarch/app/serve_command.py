"""`navarch serve`."""

import os
from pathlib import Path

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output, require_extra


@click.command("serve", cls=Command)
@click.option("--config", type=click.Path(path_type=Path), required=True, help="The configuration file.")
@click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Who reads the log.")
def serve(out: Output, config: Path, log: str) -> None:
    """Run the control plane until it is told to stop."""
    require_extra("server", "navarch")
    import uvloop  # noqa: PLC0415 -- the help does not need it

    from neorion.keel.run import Supervisor, run_process  # noqa: PLC0415 -- as above
    from neorion.keel.telemetry.setup import LogFormat, setup  # noqa: PLC0415 -- as above
    from neorion.navarch.app.reload import ConfigSource, Reloader  # noqa: PLC0415 -- as above
    from neorion.navarch.app.server import serving  # noqa: PLC0415 -- as above

    setup(LogFormat(log))
    source = ConfigSource(config, out.env)
    file = source.read()

    async def main(crew: Supervisor) -> None:
        async with serving(file, config.parent, out.env) as running:
            reloader = Reloader(source, file, running.plane)
            crew.spawn("navarch.reload", lambda: reloader.run(crew))
            out.text(f"{running.address}\n")
            await crew.stopping.wait()

    # What it keeps is nobody else's to read.
    os.umask(0o077)
    run_process(main, loop_factory=uvloop.new_event_loop)
