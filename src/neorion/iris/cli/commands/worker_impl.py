"""Implementation of `iris worker`."""

from neorion.iris.cli.session import ask
from neorion.iris.cli.tables import NAMES, NameRecord, WorkerRecord, workers_table
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.cli.kit import Output, confirm
from neorion.keel.clock import SystemClock


def list_command(out: Output, controller: str) -> None:
    answer = ask(out, controller, lambda client: client.cluster.workers(pb.WorkersRequest()))
    out.show([WorkerRecord.of(one) for one in answer.workers], workers_table(SystemClock()))


def drain_command(out: Output, controller: str, name: str) -> None:
    _drain(out, controller, name, undo=False)


def undrain_command(out: Output, controller: str, name: str) -> None:
    _drain(out, controller, name, undo=True)


def revoke_command(out: Output, controller: str, name: str, *, yes: bool) -> None:
    confirm(f"Revoke {name} permanently?", yes=yes)
    ask(out, controller, lambda client: client.cluster.revoke(pb.RevokeRequest(worker=name)))
    out.say(f"{name} is revoked.")
    out.show([NameRecord(name)], NAMES)


def _drain(out: Output, controller: str, name: str, *, undo: bool) -> None:
    ask(out, controller, lambda client: client.cluster.drain(pb.DrainRequest(worker=name, undo=undo)))
    out.say(f"{name} {'accepts work again' if undo else 'is drained and gets no new work'}.")
    out.show([NameRecord(name)], NAMES)
