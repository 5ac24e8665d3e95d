"""The work of `navarch explain`, `plan` and `doctor`."""

from dataclasses import dataclass

from neorion.keel.base import Finding, Severity
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table, escape, show_findings
from neorion.navarch.cli.session import ask
from neorion.navarch.cli.tables import STEPS, steps_in
from neorion.navarch.model.gen import navarch_pb as pb


def explain(out: Output, subject: str, server: str) -> None:
    found = ask(out, server, lambda client: client.calls.explain(pb.ExplainRequest(subject=subject)))
    if out.shared.output in (Format.TABLE, Format.WIDE):
        for sentence in found.sentences:
            out.text(f"{escape(sentence)}\n")
        return
    out.show_one(Explanation(found.subject, list(found.sentences)), _EXPLAINED)


def plan(out: Output, pool: str, server: str) -> None:
    found = ask(out, server, lambda client: client.calls.plan(pb.PlanRequest(pool=pool)))
    out.show(steps_in(found), STEPS)


def doctor(out: Output, server: str) -> int:
    found = ask(out, server, lambda client: client.calls.doctor(pb.DoctorRequest()))
    return show_findings(
        out,
        [
            Finding(Severity(one.severity), one.code, one.subject, one.sentence, one.hint)
            for one in found.findings
        ],
    )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sentences about one thing."""

    subject: str
    sentences: list[str]


_EXPLAINED: Table[Explanation] = Table(
    (Column("WHAT", lambda it: " ".join(it.sentences), wrap=True),), name=lambda it: it.subject
)
