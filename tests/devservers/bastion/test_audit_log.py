"""The audit log as a file, across the death of its writer."""

from pathlib import Path

from neorion.devservers.bastion import AuditLog
from neorion.devservers.decide.audit import verify
from neorion.devservers.model.audit import AuditEvent, AuditRecord

RECORD = AuditRecord(number=0, time="now", event=AuditEvent.LOGIN, connection="ssh-1", user="ann")


def test_a_writer_goes_on_where_the_one_before_was_killed(tmp_path: Path):
    file = tmp_path / "logs" / "audit.jsonl"
    first = AuditLog(file)
    first.write(RECORD)
    # Never closed, and in the middle of a line.
    with file.open("ab") as half:
        half.write(b'{"number":2,"ti')
    second = AuditLog(file)
    second.write(RECORD)
    head, flaws = verify(file.read_bytes().splitlines())
    assert (head.number, flaws) == (2, [])
    first.close()
    second.close()


def test_nobody_else_reads_it(tmp_path: Path):
    file = tmp_path / "audit.jsonl"
    AuditLog(file).close()
    assert file.stat().st_mode & 0o077 == 0
