import io
import json
import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Duration, Finding, Id, Instant, Quantity, Severity
from neorion.keel.cli import ColorMode, Exit, Format, SharedOptions
from neorion.keel.cli.kit import Column, Output, Table, TerminalStream, show_findings
from neorion.keel.cli.kit.serialize import plain
from neorion.keel.config.document import Findings, YamlNode, read

Entry = dict[str, Any]
TABLE: Table[Entry] = Table(
    (Column("NAME", lambda entry: entry.get("name")), Column("REST", len)),
    name=lambda entry: str(entry.get("name")),
    empty="No entries.",
)


def output(form: str, *, quiet: bool = False) -> tuple[Output, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    shared = SharedOptions(Format(form), ColorMode.AUTO, quiet)
    return (
        Output(
            shared,
            TerminalStream(out, color=False, width=None),
            TerminalStream(err, color=False, width=None),
            {},
        ),
        out,
        err,
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
    | st.sampled_from(["no", "on", "~", "null", "1e3", "0755", "0x1F", "22:30", "2026-01-01", "=", "<<", "- a", "a: b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
RECORDS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), max_size=4)


def written(node: YamlNode) -> object:
    if isinstance(node.value, list):
        return [written(each) for each in node.value]
    if isinstance(node.value, dict):
        return {key: written(each) for key, each in node.value.items()}
    return node.value


@settings(max_examples=40, deadline=None)
@given(RECORDS)
def test_any_records_come_back_from_json(records: list[Entry]):
    for show in ("show", "show_one", "watch"):
        out, stdout, stderr = output("json")
        if show == "show":
            out.show(records, TABLE)
            assert json.loads(stdout.getvalue()) == records
        elif show == "show_one":
            for record in records:
                stdout.truncate(stdout.seek(0))
                out.show_one(record, TABLE)
                assert json.loads(stdout.getvalue()) == record
        else:
            emit = out.watch(TABLE)
            for record in records:
                emit(record)
            assert [json.loads(line) for line in stdout.getvalue().splitlines()] == records
        assert stdout.getvalue().isascii()
        assert stderr.getvalue() == ""


@settings(max_examples=40, deadline=None)
@given(RECORDS)
def test_any_records_come_back_from_yaml(records: list[Entry]):
    out, stdout, stderr = output("yaml")
    out.show(records, TABLE)
    assert yaml.safe_load(stdout.getvalue()) == records
    assert stdout.getvalue().isascii()
    assert stderr.getvalue() == ""
    out, stdout, _ = output("yaml")
    emit = out.watch(TABLE)
    for record in records:
        emit(record)
    assert list(yaml.safe_load_all(stdout.getvalue())) == records


@settings(max_examples=40, deadline=None)
@given(RECORDS)
def test_yaml_means_the_same_to_readers_of_another_version(records: list[Entry]):
    out, stdout, _ = output("yaml")
    out.show(records, TABLE)
    findings = Findings("f")
    tree = written(read(stdout.getvalue(), findings))
    assert {found.code for _, found in findings.found} <= {"config.reference", "config.alias"}
    if not findings.found:
        assert tree == records


class Size(StrEnum):
    SMALL = "small"


class PoolId(Id):
    prefix = "pool"


@dataclass(frozen=True, slots=True)
class Pool:
    id: PoolId
    size: Size
    wait: Duration
    ram: Quantity
    born: Instant
    path: Path
    ratio: float
    inner: tuple["Pool", ...] = ()


def test_records_of_our_own_types_are_written_as_people_write_them():
    pool = Pool(
        PoolId("pool-1"),
        Size.SMALL,
        Duration.of(minutes=90),
        Quantity.of(2**29),
        Instant(0),
        Path("/a"),
        math.inf,
    )
    assert plain(pool) == {
        "id": "pool-1",
        "size": "small",
        "wait": "1h30m",
        "ram": "512Mi",
        "born": "1970-01-01T00:00:00.000Z",
        "path": "/a",
        "ratio": "Infinity",
        "inner": [],
    }
    assert [plain(each) for each in (math.nan, -math.inf, "half \ud800", {1: 2})] == [
        "NaN", "-Infinity", "half \ufffd", {"1": 2},
    ]  # fmt: skip
    with pytest.raises(TypeError, match="no way to show a set"):
        plain({1})


def test_names_are_one_for_each_line_whatever_they_hold():
    out, stdout, _ = output("name")
    out.show([{"name": "a"}, {"name": "b\nc\x1b[1m"}], TABLE)
    out.show_one({"name": "d"}, TABLE)
    out.watch(TABLE)({"name": "e"})
    assert stdout.getvalue() == "a\nb\\nc\\x1b[1m\nd\ne\n"


def test_nothing_is_an_empty_list_for_machines_and_a_sentence_for_people():
    for form, said in (("json", "[]\n"), ("yaml", "[]\n"), ("name", ""), ("table", "")):
        out, stdout, stderr = output(form)
        out.show([], TABLE)
        assert stdout.getvalue() == said
        assert stderr.getvalue() == ("No entries.\n" if form == "table" else "")
    out, _, stderr = output("table", quiet=True)
    out.show([], TABLE)
    assert stderr.getvalue() == ""


def test_rows_that_come_one_by_one_have_one_header():
    out, stdout, _ = output("table")
    emit = out.watch(TABLE)
    emit({"name": "a"})
    emit({"name": "b"})
    assert stdout.getvalue().splitlines() == ["NAME  REST", "a     1", "b     1"]


def test_remarks_go_to_stderr_escaped_and_quiet_silences_them():
    out, stdout, stderr = output("table")
    out.say("a\x1b[1m")
    out.warn("b")
    assert (stdout.getvalue(), stderr.getvalue()) == ("", "a\\x1b[1m\nwarning: b\n")
    out, stdout, stderr = output("table", quiet=True)
    out.say("a")
    out.warn("b")
    assert stderr.getvalue() == ""


def test_findings_fail_a_command_when_one_is_an_error():
    good = Finding(Severity.WARNING, "a.b", "disk", "Nearly full.", "Delete something.")
    out, stdout, _ = output("table")
    assert show_findings(out, [good]) is Exit.OK
    assert stdout.getvalue() == (
        "SEVERITY  SUBJECT  FINDING\nwarning   disk     Nearly full. Delete something.\n"
    )
    assert (
        show_findings(output("json")[0], [good, Finding(Severity.ERROR, "a.c", "disk", "Full.")])
        is Exit.FAILED
    )
