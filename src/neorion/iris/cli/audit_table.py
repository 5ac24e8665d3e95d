"""The audit log's entries, as records to show."""

from dataclasses import dataclass

from neorion.iris.cli.humanize import ago, moment
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Instant
from neorion.keel.cli.kit import Column, Table, Tone
from neorion.keel.clock import Clock


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """A call that changed something, or was refused. `outcome` is "done" or the code of the error."""

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
            when=moment(entry.when_ms),
            who=entry.who,
            what=entry.what,
            target=entry.target,
            outcome=entry.outcome,
        )


def deeds_table(clock: Clock) -> Table[AuditRecord]:
    return Table(
        (
            Column("WHEN", lambda deed: ago(clock.now(), deed.when)),
            Column("WHEN AT", lambda deed: deed.when, wide=True),
            Column("WHO", lambda deed: deed.who),
            Column("WHAT", lambda deed: deed.what),
            Column("OUTCOME", lambda deed: deed.outcome, tone=_tone),
            Column("TARGET", lambda deed: deed.target, wrap=True),
        ),
        name=lambda deed: str(deed.number),
        empty="Nothing is on record.",
    )


def _tone(deed: AuditRecord) -> Tone:
    return Tone.GOOD if deed.outcome == "done" else Tone.BAD
