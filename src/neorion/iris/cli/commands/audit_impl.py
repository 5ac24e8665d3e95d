"""Implementation of `iris audit`."""

from neorion.iris.cli.audit_table import AuditRecord, audit_table
from neorion.iris.cli.session import ask
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock


def audit_command(out: Output, controller: str, who: str, limit: int) -> None:
    request = pb.AuditRequest(who=who, limit=limit)
    answer = ask(out, controller, lambda client: client.cluster.audit(request))
    out.show([AuditRecord.of(one) for one in answer.entries], audit_table(SystemClock()))
