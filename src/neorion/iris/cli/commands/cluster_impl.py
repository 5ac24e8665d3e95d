"""Implementation of `iris cluster status`."""

from neorion.iris.cli.session import ask
from neorion.iris.cli.status_table import StatusRecord, status_table
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock


def status_command(out: Output, controller: str) -> None:
    answer = ask(out, controller, lambda client: client.cluster.status(pb.StatusRequest()))
    out.show_one(StatusRecord.of(controller, answer), status_table(SystemClock()))
