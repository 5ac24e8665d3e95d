"""`iris worker`: who runs tasks."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App, yes_option
from neorion.keel.cli.kit import Output, confirm

worker = App("worker", help="See workers, empty them of work, and shut them out.")

_worker = click.argument("name", metavar="WORKER")


@worker.command("list")
@controller_option
def list_command(out: Output, controller: str) -> None:
    """List the workers."""
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.tables import WorkerRecord, workers_table  # noqa: PLC0415 -- as above
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


@worker.command("revoke")
@_worker
@yes_option
@controller_option
def revoke_command(out: Output, controller: str, name: str, *, yes: bool) -> None:
    """Shut a worker out for good; its tasks are tried elsewhere when its lease is over."""
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.tables import NAMES, NameRecord  # noqa: PLC0415 -- as above
    from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above

    confirm(f"Shut {name} out for good?", yes=yes)
    ask(out, controller, lambda client: client.cluster.revoke(pb.RevokeRequest(worker=name)))
    out.say(f"{name} is shut out.")
    out.show([NameRecord(name)], NAMES)


def _drain(out: Output, controller: str, name: str, *, undo: bool) -> None:
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.tables import NAMES, NameRecord  # noqa: PLC0415 -- as above
    from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above

    ask(out, controller, lambda client: client.cluster.drain(pb.DrainRequest(worker=name, undo=undo)))
    out.say(f"{name} is given {'work again' if undo else 'nothing new'}.")
    out.show([NameRecord(name)], NAMES)
