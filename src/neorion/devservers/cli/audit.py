"""The work of `devctl admin audit`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neorion.devservers.decide.audit import LogFile, parse, verify_files
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


def verify(out: Output, paths: Sequence[Path]) -> int:
    """One finding for each line that breaks a chain, and one for each file that is whole."""
    findings: list[Finding] = []
    for checked in verify_files(LogFile(str(file), _lines(file)) for file in _files(paths)):
        name, head = checked.name, checked.head
        findings += [
            Finding(Severity.ERROR, "devservers.audit", f"{name}:{flaw.line}", flaw.reason)
            for flaw in checked.flaws
        ]
        if not checked.flaws:
            sentence = f"The log is whole up to record {head.number}, with the hash {head.hash or '-'}."
            findings.append(Finding(Severity.INFO, "devservers.audit", name, sentence))
    return show_findings(out, findings)


def search(out: Output, paths: Sequence[Path], values: dict[str, str]) -> None:
    """Shows the records that have all the given values."""
    records = [
        record for file in _files(paths) for line in _lines(file) if (record := parse(line)) is not None
    ]
    chosen = [
        one
        for one in records
        if all(str(getattr(one, field)) == value for field, value in values.items() if value)
    ]
    out.show(chosen, _RECORDS)


def _files(paths: Sequence[Path]) -> list[Path]:
    """The files themselves, and those of folders."""
    found = [file for one in paths for file in (sorted(one.glob("*.jsonl")) if one.is_dir() else [one])]
    if not found:
        raise Invalid(
            "devservers.audit_file",
            f"{', '.join(map(str, paths))} holds no audit log.",
            hint="Give .jsonl files, or a folder of them.",
        )
    return found


def _lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().splitlines()
    except OSError as error:
        raise Invalid(
            "devservers.audit_file",
            f"{file} cannot be read: {error.strerror}.",
            hint="Copy it from the bastion first; the guide of the bastion says how.",
        ) from None
