"""Implementation of `iris slice`."""

from neorion.iris.cli.session import ask
from neorion.iris.cli.tables import SliceRecord, slices_table
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock


def list_command(out: Output, controller: str, group: str | None) -> None:
    answer = ask(out, controller, lambda client: client.cluster.slices(pb.SlicesRequest()))
    chosen = [SliceRecord.of(one) for one in answer.slices if group in (None, one.group)]
    out.show(chosen, slices_table(SystemClock()))
