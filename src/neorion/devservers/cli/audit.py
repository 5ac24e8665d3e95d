"""What `devctl admin audit` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neorion.devservers.decide.audit import parse, verify
from neorion.devservers.model.audit import AuditRecord
from neorion.keel.base import Finding, Invalid, Severity
from neorion.keel.cli.kit import Column, Output, Table
from neorion.keel.cli.kit.findings import show_findings

_RECORDS: Final[Table[AuditRecord]] = Table(
    (
        Column("TIME", lambda one: one.time),
        Column("EVENT", lambda one: one.event.value),
        Column("USER", lambda one: one.user),
        Column("SERVER", lambda one: one.server),
        Column("PORT", lambda one: str(one.port) if one.port else "", priority=2),
        Column("SOURCE", lambda one: one.source, priority=1),
        Column("COMMAND", lambda one: one.command, priority=3, wrap=True),
        Column("REASON", lambda one: one.reason, priority=4, wrap=True),
        Column("KEY", lambda one: one.key, wide=True),
        Column("CONNECTION", lambda one: one.connection, wide=True),
    ),
    name=lambda one: str(one.number),
    empty="No record matches.",
)


def verify_files(out: Output, files: Sequence[Path]) -> int:
    """One finding for each line that breaks a chain, and one for each log that is whole."""
    findings: list[Finding] = []
    for file in files:
        head, flaws = verify(_lines(file))
        findings += [
            Finding(Severity.ERROR, "devservers.audit", f"{file}:{flaw.line}", flaw.reason) for flaw in flaws
        ]
        if not flaws:
            sentence = f"The log is whole up to record {head.number}, with the hash {head.hash or '-'}."
            findings.append(Finding(Severity.INFO, "devservers.audit", str(file), sentence))
    return show_findings(out, findings)


def search(out: Output, files: Sequence[Path], wanted: dict[str, str]) -> None:
    """The records of which every field that is named equals what is wanted."""
    records = [record for file in files for line in _lines(file) if (record := parse(line)) is not None]
    chosen = [
        one
        for one in records
        if all(str(getattr(one, field)) == value for field, value in wanted.items() if value)
    ]
    out.show(chosen, _RECORDS)


def _lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().splitlines()
    except OSError as error:
        raise Invalid(
            "devservers.audit_file",
            f"{file} cannot be read: {error.strerror}.",
            hint="Copy it from the bastion first; the guide of the bastion says how.",
        ) from None
