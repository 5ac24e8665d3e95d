"""`iris worker`: who runs tasks."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App
from neorion.keel.cli.kit import Output

worker = App("worker", help="See workers, and empty them of work.")

_worker = click.argument("name", metavar="WORKER")


@worker.command("list")
@controller_option
def list_command(out: Output, controller: str) -> None:
    """List the workers."""
    from neorion.iris.cli.asking import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.records import WorkerRecord, workers_table  # noqa: PLC0415 -- as above
    from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    answer = ask(out, controller, lambda client: client.cluster.workers(pb.WorkersRequest()))
    out.show([WorkerRecord.of(one) for one in answer.workers], workers_table(SystemClock()))


@worker.command("drain")
@_worker
@controller_option
def drain_command(out: Output, controller: str, name: str) -> None:
    """Give a worker nothing new; what runs there goes on."""
    _drain(out, controller, name, undo=False)


@worker.command("undrain")
@_worker
@controller_option
def undrain_command(out: Output, controller: str, name: str) -> None:
    """Give a drained worker work again."""
    _drain(out, controller, name, undo=True)


def _drain(out: Output, controller: str, name: str, *, undo: bool) -> None:
    from neorion.iris.cli.asking import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.records import NAMES, Named  # noqa: PLC0415 -- as above
    from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above

    ask(out, controller, lambda client: client.cluster.drain(pb.DrainRequest(worker=name, undo=undo)))
    out.say(f"{name} is given {'work again' if undo else 'nothing new'}.")
    out.show([Named(name)], NAMES)
