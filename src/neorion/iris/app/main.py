"""The command lines of iris' processes."""

import os
import socket
from pathlib import Path

import click

from neorion.iris.model import Resources
from neorion.keel.cli import App, run
from neorion.keel.cli.kit import Output

app = App("iris-process", help="The processes of iris.", env_prefix="IRIS")


@app.command("controller")
@click.option("--host", default="127.0.0.1", help="Where to listen.")
@click.option("--port", default=10000, help="Which port; 0 takes a free one.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Where state is kept.")
def controller_command(out: Output, host: str, port: int, folder: Path) -> None:
    """Run a controller."""
    from neorion.iris.app.controller import Settings, controller  # noqa: PLC0415 -- the help does not need it
    from neorion.keel.clock import SystemClock, SystemIds, system_rng  # noqa: PLC0415
    from neorion.keel.run import Crew, run_process  # noqa: PLC0415

    async def main(crew: Crew) -> None:
        settings = Settings(folder, host, port)
        async with controller(settings, crew, SystemClock(), system_rng(), SystemIds()) as address:
            out.text(address + "\n")
            await crew.stopping.wait()

    run_process(main)


@app.command("worker")
@click.option("--controller", required=True)
@click.option("--folder", type=click.Path(path_type=Path), required=True)
@click.option("--slice", "piece", default="slice-local")
@click.option("--cpu", default=os.cpu_count() or 1)
@click.option("--memory", default=8 << 30)
@click.option("--gpus", default=0)
@click.option("--gpu-variant", default="")
def worker_command(
    out: Output, controller: str, folder: Path, piece: str, cpu: int, memory: int, gpus: int, gpu_variant: str
) -> None:
    """Run a worker."""
    from neorion.iris.app.worker import run_worker  # noqa: PLC0415
    from neorion.iris.worker import Identity  # noqa: PLC0415
    from neorion.keel.run import Crew, run_process  # noqa: PLC0415
    from neorion.keel.telemetry.setup import Form, setup

    setup(Form.PEOPLE)
    total = Resources(cpu * 1000, memory, 1 << 40, gpus, gpu_variant)
    identity = Identity(piece, socket.gethostname(), total, {})

    async def main(crew: Crew) -> None:
        await run_worker(crew, identity, controller, None, folder)

    run_process(main)


def main(argv: list[str]) -> int:
    return run(app, argv)
