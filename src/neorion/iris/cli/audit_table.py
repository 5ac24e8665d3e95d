"""Records and table of audit log entries."""

from dataclasses import dataclass

from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Instant
from neorion.keel.cli.kit import Column, Table, Tone
from neorion.keel.cli.kit.humanize import ago, instant_of_ms
from neorion.keel.clock import Clock


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """A call that changed something or was refused. `outcome` is "done" or an error code."""

    number: int
    when: Instant | None
    who: str
    what: str
    target: str
    outcome: str

    @classmethod
    def of(cls, entry: pb.AuditEntry) -> "AuditRecord":
        return cls(
            number=entry.number,
            when=instant_of_ms(entry.when_ms),
            who=entry.who,
            what=entry.what,
            target=entry.target,
            outcome=entry.outcome,
        )


def audit_table(clock: Clock) -> Table[AuditRecord]:
    return Table(
        (
            Column("WHEN", lambda entry: ago(clock.now(), entry.when)),
            Column("WHEN AT", lambda entry: entry.when, wide=True),
            Column("WHO", lambda entry: entry.who),
            Column("WHAT", lambda entry: entry.what),
            Column("OUTCOME", lambda entry: entry.outcome, tone=_tone),
            Column("TARGET", lambda entry: entry.target, wrap=True),
        ),
        name=lambda entry: str(entry.number),
        empty="The audit log has no entries.",
    )


def _tone(entry: AuditRecord) -> Tone:
    return Tone.GOOD if entry.outcome == "done" else Tone.BAD
