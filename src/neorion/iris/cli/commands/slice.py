"""`iris slice`: machines that come and go together."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App
from neorion.keel.cli.kit import Output

slices = App("slice", help="See slices of machines.")


@slices.command("list")
@click.option("--group", metavar="NAME", help="Only those of this scale group.")
@controller_option
def list_command(out: Output, controller: str, group: str | None) -> None:
    """List the slices."""
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.cli.tables import SliceRecord, slices_table  # noqa: PLC0415 -- as above
    from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    answer = ask(out, controller, lambda client: client.cluster.slices(pb.SlicesRequest()))
    chosen = [SliceRecord.of(one) for one in answer.slices if group in (None, one.group)]
    out.show(chosen, slices_table(SystemClock()))
