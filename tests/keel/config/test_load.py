from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from neorion.keel.base import Denied, Duration, Invalid, NotFound, Quantity
from neorion.keel.config import (
    DurationField,
    InvalidConfig,
    Model,
    NameField,
    Problem,
    QuantityField,
    SecretValue,
    load,
    loads,
)


class Mode(StrEnum):
    FAST = "fast"
    SAFE = "safe"


class Reactive(Model):
    type: Literal["reactive"]
    scale_up_threshold: int = Field(default=80, ge=0, le=100)


class Queue(Model):
    type: Literal["queue"]
    jobs_per_node: int = 1


class Scaling(Model):
    min_nodes: int
    max_nodes: int
    cooldown_period: DurationField = Duration.of(minutes=5)
    autoscaler: Annotated[Reactive | Queue, Field(discriminator="type")] | None = None


class Pool(Model):
    name: NameField
    provider: str
    scaling: Scaling
    mode: Mode = Mode.SAFE
    ram: QuantityField | None = None
    tags: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)


class Fleet(Model):
    providers: dict[str, str] = Field(default_factory=dict)
    pools: tuple[Pool, ...] = ()
    token: SecretValue | None = None
    port: int = 1
    weight: float = 0
    debug: bool = False
    note: str | None = None
    either: int | bool = 0

    def problems(self):
        for index, pool in enumerate(self.pools):
            if pool.provider not in self.providers:
                yield Problem(
                    ("pools", index, "provider"), f'There is no provider "{pool.provider}".', hint="Add it."
                )


GOOD = """\
providers: { lambda: key }
pools:
  - name: training
    provider: lambda
    ram: 2048GB
    mode: fast
    tags: [a, no, 22:30]
    scaling:
      min_nodes: 2
      max_nodes: 50
      cooldown_period: { milliseconds: 1800000 }
      autoscaler:
        type: reactive
        scale_up_threshold: 80
"""


def findings(text: str, **env: str) -> list[tuple[str, str, str, str]]:
    with pytest.raises(InvalidConfig) as caught:
        loads(text, Fleet, env, file="f.yaml")
    assert caught.value.code == "config.invalid"
    assert caught.value.__context__ is None
    return [(each.subject, each.code, each.sentence, each.hint) for each in caught.value.findings]


def test_a_good_file_becomes_a_typed_model():
    fleet = loads(GOOD, Fleet, {})
    pool = fleet.pools[0]
    assert pool.scaling.cooldown_period == Duration.of(minutes=30)
    assert pool.ram == Quantity.of(2048 * 10**9)
    assert pool.mode is Mode.FAST
    assert isinstance(pool.scaling.autoscaler, Reactive)
    assert pool.tags == ("a", "no", "22:30")


@pytest.mark.parametrize(
    "form", ["30m", "1800", "'1800'", "0.5h", "{ milliseconds: 1800000 }", "{minutes: 30}"]
)
def test_every_form_of_a_duration_is_taken(form: str):
    scaling = loads(f"min_nodes: 1\nmax_nodes: 1\ncooldown_period: {form}", Scaling, {})
    assert scaling.cooldown_period == Duration.of(minutes=30)


def test_an_empty_file_is_a_mapping_without_keys():
    assert loads("", Fleet, {}) == Fleet()
    assert loads("# only a comment\n", Fleet, {}) == Fleet()
    assert [code for _, code, _, _ in findings("false")] == ["config.wrong_type"]


def test_all_mistakes_are_told_at_once_each_with_its_place():
    text = GOOD.replace("min_nodes: 2", "min_node: 2").replace("max_nodes: 50", 'max_nodes: "50"')
    text = text.replace("mode: fast", "mode: fsat").replace("2048GB", "lots") + "prot: 5\n"
    assert findings(text) == [
        ("f.yaml:5:10 pools[0].ram", "config.wrong_value",
         '"lots" is not a valid quantity; write "4", "500m", "512Mi" or "2048GB".', ""),
        ("f.yaml:6:11 pools[0].mode", "config.wrong_value", '"mode" does not take "fsat".', 'did you mean "fast"?'),
        ("f.yaml:9:7 pools[0].scaling.min_node", "config.unknown_key", '"min_node" is not a known key here.',
         'did you mean "min_nodes"?'),
        ("f.yaml:10:18 pools[0].scaling.max_nodes", "config.wrong_type",
         '"max_nodes" takes a whole number, not a text.',
         "Numbers are written without quotes and as in JSON: 1000, 0.5, 1e3."),
        ("f.yaml:15:1 prot", "config.unknown_key", '"prot" is not a known key here.', 'did you mean "port"?'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "subject", "code", "words", "hint"),
    [
        ("port: [1]", "f.yaml:1:7 port", "config.wrong_type", "takes a whole number, not a list", ""),
        ("port: 1.5", "f.yaml:1:7 port", "config.wrong_type", "not a number with a fraction", ""),
        ("weight: x", "f.yaml:1:9 weight", "config.wrong_type", "takes a number, not a text", ""),
        ("weight: 1_000", "f.yaml:1:9 weight", "config.wrong_type", "not a text", "as in JSON"),
        ("debug: yes", "f.yaml:1:8 debug", "config.wrong_type", "takes true or false, not a text", "Write true"),
        ("debug: 1", "f.yaml:1:8 debug", "config.wrong_type", "takes true or false, not a whole number", ""),
        ("note: 1.10", "f.yaml:1:7 note", "config.wrong_type", "takes a text", "Put it in quotes."),
        ("either: x", "f.yaml:1:9 either", "config.wrong_type", "takes a whole number or true or false", ""),
        ("pools: 3", "f.yaml:1:8 pools", "config.wrong_type", "takes a list, not a whole number", ""),
        ("pools: [3]", "f.yaml:1:9 pools[0]", "config.wrong_type", '"pools[0]" takes a mapping', ""),
        ("- 1", "f.yaml:1:1", "config.wrong_type", "The file takes a mapping, not a list", ""),
        ("pools: [{}]", "f.yaml:1:9 pools[0].name", "config.missing_key", '"pools[0]" needs "name".', ""),
        ("a: 1\na: 2", "f.yaml:2:1 a", "config.duplicate_key", "the first is on line 1", "Remove one"),
        ("note: *x", "f.yaml:1:7 note", "config.alias", "Aliases", "quotes"),
        ("note: &x y", "f.yaml:1:7 note", "config.alias", "Anchors (&x)", "quotes"),
        ("note: !x y", "f.yaml:1:7 note", "config.tag", "Tags (!x)", "quotes"),
        ("note: !!python/name:os.system x", "f.yaml:1:7 note", "config.tag", "Tags", ""),
        ("<<: {port: 1}", "f.yaml:1:1 <<", "config.alias", "Merge keys", "Write the keys out"),
        ("? [a]\n: 1", "f.yaml:1:3", "config.yaml", "A key is a text", ""),
        ("note: a: b", "f.yaml:1:8", "config.yaml", "This is not YAML", ""),
        ("port: 1\n\tdebug: true", "f.yaml:2:1", "config.yaml", "This is not YAML", "no tabs"),
        ("note: a\n---\nnote: b", "f.yaml:2:1", "config.yaml", "second document", ""),
        ("note: \x07", "f.yaml:1:7", "config.yaml", "U+0007", "escape"),
        ("port: 99999999999999999999", "f.yaml:1:7 port", "config.wrong_value", "64 bits", "quotes"),
        ("weight: 1e999", "f.yaml:1:9 weight", "config.wrong_value", "64 bits", "quotes"),
        ("note: ${MISSIN}", "f.yaml:1:7 note", "config.reference", "MISSIN is not set", '"${MISSING_X}"'),
        ("note: ${", "f.yaml:1:7 note", "config.reference", "does not end", "$${"),
        ("note: ${1a}", "f.yaml:1:7 note", "config.reference", "${1a} is not a valid reference", "${NAME:-default}"),
        ("note: ${file:gone}", "f.yaml:1:7 note", "config.reference", "No such file", "folder of this file"),
        ("${X}: 1", "f.yaml:1:1 ${X}", "config.reference", "not in keys", ""),
    ],
)  # fmt: skip
def test_each_mistake_has_its_place_and_its_words(text: str, subject: str, code: str, words: str, hint: str):
    found = next(each for each in findings(text, MISSING_X="1") if each[1] == code)
    assert found[0] == subject
    assert words in found[2]
    assert hint in found[3]


def test_limits_names_tags_of_unions_and_units_speak_our_words():
    text = GOOD.replace("threshold: 80", "threshold: 180").replace("name: training", "name: Training_1")
    text = text.replace("{ milliseconds: 1800000 }", "soon")
    assert [sentence for _, _, sentence, _ in findings(text)] == [
        '"Training_1" is not a valid name; use lower-case letters, digits and dashes, at most 63, with a letter or digit at both ends.',
        '"soon" is not a valid duration; write "30m", "2h30m", "1d" or seconds as a number.',
        '"scale_up_threshold" is 180; it must be at most 100.',
    ]
    tag = findings(GOOD.replace("type: reactive", "type: reactiv"))
    assert tag == [
        ("f.yaml:13:15 pools[0].scaling.autoscaler.type", "config.wrong_value",
         '"type" does not take "reactiv".', 'did you mean "reactive"?')
    ]  # fmt: skip
    missing = findings(GOOD.replace("type: reactive", "{}").replace("        {}\n", ""))
    assert missing[0][:3] == (
        "f.yaml:12:7 pools[0].scaling.autoscaler.type", "config.missing_key", '"autoscaler" needs "type".',
    )  # fmt: skip
    key = findings(GOOD.replace("scale_up_threshold: 80", "scale_up_treshold: 80"))
    assert key[0][3] == 'did you mean "scale_up_threshold"?'


def test_no_sentence_is_pydantics():
    text = "port: x\npools: {}\nnote: []\ndebug: z\nextra: 1\nweight: []\nproviders: 3\ntoken: 3\neither: []"
    for _, _, sentence, _ in findings(text):
        assert "Input" not in sentence
        assert "valid" not in sentence


def test_a_model_can_report_what_no_field_sees():
    text = GOOD.replace("providers: { lambda: key }", "providers: {}")
    assert findings(text) == [
        ("f.yaml:4:15 pools[0].provider", "config.wrong_value", 'There is no provider "lambda".', "Add it.")
    ]


def test_one_mistake_is_the_sentence_and_many_are_counted():
    with pytest.raises(InvalidConfig) as one:
        loads("prot: 1", Fleet, {}, file="f.yaml")
    assert one.value.sentence == 'f.yaml:1:1 prot: "prot" is not a known key here.'
    assert one.value.hint == 'did you mean "port"?'
    with pytest.raises(InvalidConfig) as many:
        loads("prot: 1\nzzz: 2", Fleet, {}, file="f.yaml")
    assert many.value.sentence == "f.yaml has 2 problems, the first at f.yaml:1:1 prot."


def test_a_follow_up_of_a_reported_mistake_is_not_reported_again():
    assert [code for _, code, _, _ in findings("port: *x\nnote: !t 5")] == ["config.alias", "config.tag"]
    assert len(findings("port: ${NOPE}")) == 1


def test_files_are_found_refused_and_capped(tmp_path: Path):
    file = tmp_path / "a.yaml"
    with pytest.raises(NotFound, match="does not exist"):
        load(file, Fleet, {})
    file.write_bytes(b"port: 5\n")
    assert load(file, Fleet, {}).port == 5
    file.write_bytes(b"\xef\xbb\xbfport: 5\r\n")
    assert load(file, Fleet, {}).port == 5
    file.write_bytes(b"port: 5\nnote: \xff")
    with pytest.raises(InvalidConfig, match=r"a\.yaml:2:7: The file is not UTF-8"):
        load(file, Fleet, {})
    file.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(InvalidConfig, match="larger than 1 MiB"):
        load(file, Fleet, {})
    with pytest.raises(Invalid, match="directory"):
        load(tmp_path, Fleet, {})
    with pytest.raises(Invalid, match="not possible"):
        load(Path("a\0b"), Fleet, {})


def test_a_file_this_user_may_not_read_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Tests may run as root, who may read everything.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Denied, match="may not be read"):
        load(tmp_path / "a.yaml", Fleet, {})


def test_findings_are_bounded():
    assert len(findings("\n".join(f"key{number}: 1" for number in range(500)))) == 100
