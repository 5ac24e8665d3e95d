import os
from pathlib import Path

import pytest
from pydantic import field_validator

from neorion.keel.config import (
    DurationField,
    InvalidConfig,
    Model,
    NameField,
    Problem,
    SecretValue,
    load,
    loads,
)


class Service(Model):
    note: str = ""
    port: int = 0
    ratio: float = 0
    on: bool = False
    wait: DurationField | None = None
    name: NameField = "x"
    token: SecretValue | None = None
    notes: tuple[str, ...] = ()

    @field_validator("notes")
    @classmethod
    def _no_star(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if "*" in each:
                raise ValueError(f"no star may stand in {each[:30]}")
        return value

    def problems(self):
        if "!" in self.note:
            yield Problem(("note",), "Do not shout.", hint=f"You said: {self.note[:12]}")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("${A}", "1"),
        ("'${A}'", "1"),
        ("x-${A}-${B}", "1x-1-two".removeprefix("1")),
        ("${NONE:-}", ""),
        ("${NONE:-a b:c}", "a b:c"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}x", "x"),
        ("$${A}", "${A}"),
        ("$A $$ 5$", "$A $$ 5$"),
        ("|\n  ${A}\n  ${B}", "1\ntwo"),
    ],
)
def test_references_are_resolved_inside_texts(written: str, read: str):
    assert loads(f"note: {written}", Service, {"A": "1", "B": "two", "EMPTY": ""}).note == read


def test_what_a_reference_brings_is_not_resolved_again():
    assert loads("note: ${A}", Service, {"A": "${B}", "B": "no"}).note == "${B}"


def test_a_whole_reference_fills_numbers_and_truth_values():
    env = {"P": "8080", "R": "0.5", "T": "true", "W": "30m"}
    service = loads("port: ${P}\nratio: '${R}'\non: ${T}\nwait: ${W}\nnote: ${P}", Service, env)
    assert (service.port, service.ratio, service.on, service.note) == (8080, 0.5, True, "8080")
    assert loads("port: ${P:-80}", Service, {}).port == 80


def test_a_partial_reference_stays_text():
    with pytest.raises(InvalidConfig):
        loads("port: 1${P}", Service, {"P": "2"})


def test_files_are_read_beside_the_file_that_names_them(tmp_path: Path):
    (tmp_path / "token").write_text("s3cr3t\n")
    absolute = tmp_path / "absolute"
    absolute.write_text("a\nb\r\n")
    config = tmp_path / "c.yaml"
    config.write_text(f"token: ${{file:token}}\nnote: ${{file:{absolute}}}\n")
    service = load(config, Service, {})
    assert service.token == SecretValue("s3cr3t")
    assert service.note == "a\nb"


def test_a_referenced_file_is_capped_regular_and_text(tmp_path: Path):
    (tmp_path / "large").write_bytes(b"x" * (65 * 1024))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("large", "larger than 64 KiB"),
        ("binary", "not UTF-8"),
        ("pipe", "not a regular file"),
        (".", "not a regular file"),
        ("gone", "No such file"),
    ):
        with pytest.raises(InvalidConfig, match=words):
            loads(f"token: ${{file:{name}}}", Service, {}, folder=tmp_path)


@pytest.mark.cpu(10)
def test_references_cannot_make_a_small_file_large(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"x" * (64 << 10))
    for text in ("notes:\n" + "- ${file:f}\n" * 40_000, "note: '" + "${file:f}" * 40_000 + "'"):
        with pytest.raises(InvalidConfig, match="more than 1 MiB"):
            loads(text, Service, {}, folder=tmp_path)


@pytest.mark.cpu(10)
def test_many_references_that_lead_nowhere_are_reported_quickly():
    text = "notes:\n" + "".join(f"- ${{NOWHERE_{number}}}\n" for number in range(40_000))
    with pytest.raises(InvalidConfig) as caught:
        loads(text, Service, {f"SOMEWHERE_{number}": "x" for number in range(200)})
    assert len(caught.value.findings) == 100
    assert caught.value.findings[0].subject == "text:2:3 notes[0]"


CANARY = "hunter2-hunter2-hunter2-hunter2-hunter2*!"


@pytest.mark.parametrize(
    "text",
    [
        "port: ${C}",
        "ratio: ${C}",
        "on: ${C}",
        "wait: ${C}",
        "name: ${C}",
        "name: x${C}",
        "note: [${C}]",
        "notes: ['${C}']",
        "notes: ['*', '${C}']",
        "notes: ${C}",
        "note: ${C}",
        "token: ['${C}']",
        "wait: { seconds: '${C}' }",
        "wait: { '${C}': 1 }",
        "unknown: ${C}",
    ],
)
def test_what_a_reference_brings_appears_in_no_message(text: str):
    with pytest.raises(InvalidConfig) as caught:
        loads(text, Service, {"C": CANARY})
    error = caught.value
    told = f"{error!r} {error.sentence} {error.hint} {error.findings} {error.__dict__} {error.__context__}"
    assert "hunter2-" not in told


def test_a_variable_that_is_no_text_is_refused():
    with pytest.raises(InvalidConfig, match="not UTF-8"):
        loads("note: ${A}", Service, {"A": "\udcff"})


class Account(Model):
    token: SecretValue


class Vault(Model):
    name: str
    key: SecretValue | None = None
    accounts: dict[str, Account]
    keys: tuple[SecretValue, ...] = ()


def test_secrets_stay_as_written_where_they_are_not_needed():
    text = "name: ${NAME}\nkey: ${KEY}\naccounts: { bob: { token: 'a-${B}' } }\nkeys: ['${C}', plain]\n"
    found = loads(text, Vault, {"NAME": "x"}, with_secrets=False)
    assert found.name == "x"
    assert found.key is not None
    assert [found.key.reveal(), found.accounts["bob"].token.reveal()] == ["${KEY}", "a-${B}"]
    assert [key.reveal() for key in found.keys] == ["${C}", "plain"]
    with pytest.raises(InvalidConfig, match="has 3 problems"):
        loads(text, Vault, {"NAME": "x"})
