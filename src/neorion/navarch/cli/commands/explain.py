"""`navarch explain`, `navarch plan`, `navarch doctor`: what is so, what would be done, and what should not be."""

from dataclasses import dataclass

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Column, Output, Table, escape, show_findings
from neorion.navarch.cli.options import server_option


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sentences about one thing."""

    subject: str
    sentences: list[str]


_EXPLAINED: Table[Explanation] = Table(
    (Column("WHAT", lambda it: " ".join(it.sentences), wrap=True),), name=lambda it: it.subject
)


@click.command("explain", cls=Command)
@click.argument("subject", metavar="NODE|POOL")
@server_option
def explain(out: Output, subject: str, server: str) -> None:
    """Say what a node or a pool does, why, and what comes next."""
    from neorion.keel.cli import Format  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    found = ask(out, server, lambda client: client.calls.explain(pb.ExplainRequest(subject=subject)))
    if out.shared.output in (Format.TABLE, Format.WIDE):
        for sentence in found.sentences:
            out.text(f"{escape(sentence)}\n")
        return
    out.show_one(Explanation(found.subject, list(found.sentences)), _EXPLAINED)


@click.command("plan", cls=Command)
@click.option("--pool", default="", metavar="NAME", help="Only for this pool.")
@server_option
def plan(out: Output, pool: str, server: str) -> None:
    """Say what would be done now."""
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import STEPS, steps_in  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    found = ask(out, server, lambda client: client.calls.plan(pb.PlanRequest(pool=pool)))
    out.show(steps_in(found), STEPS)


@click.command("doctor", cls=Command)
@server_option
def doctor(out: Output, server: str) -> int:
    """Look for what should not be."""
    from neorion.keel.base import Finding, Severity  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    found = ask(out, server, lambda client: client.calls.doctor(pb.DoctorRequest()))
    return show_findings(
        out,
        [
            Finding(Severity(one.severity), one.code, one.subject, one.sentence, one.hint)
            for one in found.findings
        ],
    )
