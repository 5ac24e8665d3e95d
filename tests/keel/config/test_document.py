import contextlib
import json
import re

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict, Field

from neorion.keel.config import InvalidConfig, Model, loads
from neorion.keel.config.document import DocumentTooLarge, Findings, YamlNode, read, read_scalar


class Anything(Model):
    model_config = ConfigDict(extra="allow")


class Tree(Model):
    name: str = ""
    count: int = 0
    ratio: float = 0
    on: bool = False
    children: tuple["Tree", ...] = ()
    by_name: dict[str, "Tree"] = Field(default_factory=dict)


# Texts that look like YAML find more than texts of any characters.
SNIPPETS = st.sampled_from(
    [
        *(
            "name:",
            "count:",
            "children:",
            "by_name:",
            "- ",
            "  ",
            "\n",
            "[",
            "]",
            "{",
            "}",
            ", ",
            ": ",
            "? ",
            "&a ",
            "*a",
        ),
        *(
            "!t ",
            "!!int ",
            "'",
            '"',
            "|\n",
            ">-\n",
            "#",
            "%YAML 1.2\n",
            "---\n",
            "...\n",
            "<<: ",
            "${",
            "${A}",
            "$${",
        ),
        *(
            "\t",
            "\\ud800",
            "1e3",
            "0755",
            "22:30",
            "2026-01-01",
            "~",
            "true",
            "no",
            ".inf",
            "9" * 30,
            "\ufeff",
            "\x00",
        ),
        *("\u2028", "ü", "\U0001f600"),
    ]
)
TEXTS = st.text() | st.lists(SNIPPETS | st.text(max_size=3), max_size=40).map("".join)


@settings(deadline=None)
@given(TEXTS, st.sampled_from([Tree, Anything]))
@example('"\\ud800"', Tree)
@example("\ud800", Tree)
@example("!<", Tree)
@example("%YAML 9.9\n---", Tree)
@example("9" * 5000, Tree)
def test_any_text_loads_or_is_refused_with_a_place(text: str, model: type[Model]):
    try:
        loads(text, model, {"A": "1"}, file="f")
    except InvalidConfig as error:
        findings = error.findings
    else:
        return
    assert findings
    for finding in findings:
        assert re.match(r"f:[1-9][0-9]*:[1-9][0-9]*( |$)", finding.subject)
        assert finding.sentence
        assert finding.code.startswith("config.")


# JSON may hold some characters raw that YAML wants escaped, and the other way round.
CHARACTERS = st.characters(exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"], exclude_characters="\ufeff")
KEYS = st.text(CHARACTERS).filter(lambda key: key != "<<" and "${" not in key)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def plain(node: YamlNode) -> object:
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    if isinstance(node.value, dict):
        return {key: plain(each) for key, each in node.value.items()}
    return node.value


@settings(deadline=None)
@given(VALUES)
def test_json_is_read_as_what_it_says(value: object):
    findings = Findings("f")
    assert plain(read(json.dumps(value, ensure_ascii=False), findings)) == value
    assert not findings.found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("false", False), ("null", None), ("~", None), ("", None),
        ("0", 0), ("-7", -7), ("1.10", 1.1), ("1e3", 1000.0), ("-0.5E-2", -0.005), ("9223372036854775807", 2**63 - 1),
    ],
)  # fmt: skip
def test_these_words_have_a_meaning(text: str, value: object):
    read_value = read_scalar(text)
    assert read_value == value
    assert type(read_value) is type(value)


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "on", "off", "y", "N", "True", "FALSE", "Null", "22:30", "1:2:3", "0755", "0o17", "0x1F", "0b1", "1_000",
     "+5", ".5", "5.", ".inf", "-.inf", ".nan", "NaN", "2026-01-01", "2026-01-01T00:00:00Z", "=", "1e", "٣", "1.2.3"],
)  # fmt: skip
def test_everything_else_is_text(text: str):
    assert read_scalar(text) == text


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "-9223372036854775809", "9" * 10_000, "1e999", "-1e999"]
)
def test_a_number_too_large_is_refused(text: str):
    with pytest.raises(OverflowError):
        read_scalar(text)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{this}: &{this} [{','.join('*' + before for _ in range(9))}]\n"
    for before, this in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.cpu(10)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "Aliases"),
        ("[" * 100_000, "more than 64 deep"),
        ("{a: " * 100_000, "more than 64 deep"),
        ("- " * 100_000, "more than 64 deep"),
        ("? " * 100_000, "64 deep|not YAML"),
        ("\n".join(" " * depth + "a:" for depth in range(1200)), "more than 64 deep"),
        ("- 1\n" * 60_000, "more than 50000 values"),
        ("a: [" + "1," * 400_000 + "]", "more than 50000 values"),
        ("x" * (2 << 20), "larger than 1 MiB"),
        ("a" * 1_000_000 + ": 1", "known key|not YAML"),
        ("'" + "\n" * 1_000_000, "not YAML"),
        ("\n".join(f"k{number}: 1" for number in range(20_000)), "known key"),
    ],
    ids=lambda value: value[:12],
)
def test_bombs_are_refused_quickly(text: str, words: str):
    with pytest.raises(InvalidConfig) as caught:
        loads(text, Tree, {})
    assert any(re.search(words, finding.sentence) for finding in caught.value.findings)


def test_the_reader_without_libyaml_gives_the_same_tree(monkeypatch: pytest.MonkeyPatch):
    text = "a: [1, {b: 'c'}]\nd: |\n  e\n  f\ng: &x 1\n"
    trees: list[YamlNode] = []
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        monkeypatch.setattr("neorion.keel.config.document._LOADER", loader)
        trees.append(read(text, Findings("f")))
    assert trees[0] == trees[1]


def test_half_a_character_is_refused_by_both_readers(monkeypatch: pytest.MonkeyPatch):
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        monkeypatch.setattr("neorion.keel.config.document._LOADER", loader)
        findings = Findings("f")
        with contextlib.suppress(DocumentTooLarge):
            read('a: "\\ud800"', findings)
        assert [found.code for _, found in findings.found] == ["config.yaml"]
