"""`iris audit`: who changed what."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("audit", cls=Command)
@click.option("--user", "who", allow_from_autoenv=False, default="", help="Only what this one did.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="At most so many entries.")
@controller_option
def audit_command(out: Output, controller: str, who: str, limit: int) -> None:
    """List who changed what, the newest first."""
    from neorion.iris.cli.audit_table import AuditRecord, deeds_table  # noqa: PLC0415 -- as above
    from neorion.iris.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.iris.model.gen import iris_pb as pb  # noqa: PLC0415 -- as above
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- as above

    request = pb.AuditRequest(who=who, limit=limit)
    answer = ask(out, controller, lambda client: client.cluster.audit(request))
    out.show([AuditRecord.of(one) for one in answer.entries], deeds_table(SystemClock()))
