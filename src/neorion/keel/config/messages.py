"""Translates pydantic's errors: one sentence for a person and a hint for the next step."""

import re
from types import NoneType
from typing import Final

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from neorion.keel.base import did_you_mean, nearest
from neorion.keel.config.document import Findings, Steps, YamlNode, dotted, short
from neorion.keel.config.locate import Located, any_broken, known_keys, locate, walk

# Far more than is shown. A wrong or malicious file must not cost seconds.
_EXPLAINED_MAX: Final = 1_000
_WINDOW: Final = 8
_WITHHELD: Final = "is refused; the reason shows a value that came from a reference and is withheld."

_EXPECTED: Final = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "frozen_set_type": "a list",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping",
    "none_required": "nothing",
    "set_type": "a list",
    "string_type": "a text",
    "tuple_type": "a list",
}
_LIMITS: Final = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "string_too_long": "at most {max_length} characters long",
    "string_too_short": "at least {min_length} characters long",
    "too_long": "at most {max_length} entries long",
    "too_short": "at least {min_length} entries long",
}
_KINDS: Final[dict[type, str]] = {
    NoneType: "nothing",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}
_NUMBERS: Final = {"a number", "a whole number"}
_OLD_BOOLEANS: Final = {"yes", "no", "on", "off", "y", "n", "true", "false"}


class Explainer:
    """Turns the errors of one file into findings."""

    def __init__(self, root: YamlNode, model: type[BaseModel], findings: Findings) -> None:
        self._root = root
        self._model = model
        self._findings = findings
        hidden = {str(node.value) for node in walk(root) if node.hidden and node.value}
        self._hidden_words = {value for value in hidden if len(value) < _WINDOW}
        self._hidden_text = "\0".join(hidden - self._hidden_words)

    def explain(self, errors: list[ErrorDetails]) -> None:
        expected: dict[Steps, list[str]] = {}
        misspelt: set[tuple[Steps, str]] = set()
        # Unknown keys first: the key they were meant to be is then not reported as missing.
        for error in sorted(errors[:_EXPLAINED_MAX], key=lambda each: each["type"] != "extra_forbidden"):
            at = locate(self._root, error["loc"])
            if at.broken:
                continue
            match error["type"]:
                case "extra_forbidden":
                    misspelt.add(self._unknown_key(at, error["loc"]))
                case "missing":
                    if (at.steps, str(error["loc"][-1])) not in misspelt:
                        self._missing(at, str(error["loc"][-1]))
                case kind if kind in _EXPECTED:
                    # Each member of a union reports the same value: one sentence for all.
                    expected.setdefault(at.steps, []).append(_EXPECTED[kind])
                case _:
                    self._wrong_value(at, error)
        for steps, kinds in expected.items():
            self._wrong_type(locate(self._root, steps), list(dict.fromkeys(kinds)))

    def own(self, at: Located, sentence: str, hint: str) -> None:
        """Adds an error from a model or validator, unless its text would reveal a referenced value."""
        if at.node.hidden or self._gives_away(f"{sentence} {hint}"):
            sentence, hint = f"{_label(at.steps)} {_WITHHELD}", ""
        self._add(at, "config.wrong_value", sentence, hint)

    def _gives_away(self, words: str) -> bool:
        """True if a referenced value occurs in `words`.

        A part of a long value is enough, because messages cut values short.
        """
        return any(
            words[at : at + _WINDOW] in self._hidden_text for at in range(len(words) - _WINDOW + 1)
        ) or any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", words) for word in self._hidden_words)

    def _add(self, at: Located, code: str, sentence: str, hint: str = "") -> None:
        self._findings.add(at.node.place, (*at.steps, *at.beyond), code, sentence, hint)

    def _unknown_key(self, at: Located, loc: Steps) -> tuple[Steps, str]:
        key = str(loc[-1])
        known = known_keys(self._model, loc[:-1])
        taken = locate(self._root, loc[:-1]).node.value
        free = {each for each in known if not isinstance(taken, dict) or each not in taken}
        hint = did_you_mean(key, free or known)
        self._findings.add(
            at.node.key_place,
            at.steps,
            "config.unknown_key",
            f'"{short(key)}" is not a known key here.',
            hint,
        )
        return at.steps[:-1], nearest(key, free) or ""

    def _missing(self, at: Located, key: str) -> None:
        sentence = f'{_label(at.steps)} needs "{key}".'
        self._findings.add(at.node.key_place, (*at.steps, key), "config.missing_key", sentence)

    def _wrong_type(self, at: Located, kinds: list[str]) -> None:
        wanted = " or ".join(kinds)
        got = "a value of another kind" if at.node.hidden else _KINDS[type(at.node.value)]
        hint = "" if at.node.hidden else _type_hint(at.node, kinds)
        self._add(at, "config.wrong_type", f"{_label(at.steps)} takes {wanted}, not {got}.", hint)

    def _wrong_value(self, at: Located, error: ErrorDetails) -> None:
        kind, context = error["type"], error.get("ctx", {})
        is_key = error["loc"][-1:] == ("[key]",)
        at = Located(_key_of(at.node) if is_key else at.node, at.steps, (), at.broken)
        match kind:
            case "enum" | "literal_error":
                self._wrong_choice(at, _choices(context["expected"]))
            case "union_tag_invalid":
                tag = context["discriminator"].strip("'")
                self._wrong_choice(locate(self._root, (*at.steps, tag)), _choices(context["expected_tags"]))
            case "union_tag_not_found":
                self._missing(at, context["discriminator"].strip("'"))
            case "value_error" | "assertion_error":
                if not any_broken(at.node):
                    self.own(at, _sentence(str(context["error"])), "")
            case _ if kind in _LIMITS:
                shown = _shown(at.node)
                got = f" is {shown}; it" if shown and not kind.startswith("too_") else ""
                limit = _LIMITS[kind].format_map(context)
                self._add(at, "config.wrong_value", f"{_label(at.steps)}{got} must be {limit}.")
            case _:
                self.own(at, _sentence(f"{_label(at.steps)}: {error['msg']}"), "")

    def _wrong_choice(self, at: Located, choices: list[str]) -> None:
        if at.node.hidden or not isinstance(at.node.value, str):
            sentence = f"{_label(at.steps)} does not take this value."
            hint = f"known: {', '.join(choices)}"
        else:
            sentence = f"{_label(at.steps)} does not take {_shown(at.node)}."
            hint = did_you_mean(at.node.value, choices)
        self._add(at, "config.wrong_value", sentence, hint)


def _key_of(node: YamlNode) -> YamlNode:
    return YamlNode(node.key_place, node.key_place, None)


def _label(steps: Steps) -> str:
    """The last key and the indexes after it: `"pools[0]"`."""
    keys = [index for index, step in enumerate(steps) if isinstance(step, str)]
    return f'"{dotted(steps[keys[-1] :])}"' if keys else "The file"


def _shown(node: YamlNode) -> str:
    match node.value:
        case bool() | list() | dict() | None:
            return ""
        case _ if node.hidden:
            return ""
        case str() as text:
            return f'"{short(text)}"'
        case number:
            return str(number)


def _type_hint(node: YamlNode, kinds: list[str]) -> str:
    match node.value:
        case int() | float() if "a text" in kinds:
            return "Put it in quotes."
        case str() as text if "true or false" in kinds and text.lower() in _OLD_BOOLEANS:
            return "Write true or false, without quotes."
        case str() as text if text.strip("+-._")[:1].isdigit() and _NUMBERS & set(kinds):
            return "Numbers are written without quotes and as in JSON: 1000, 0.5, 1e3."
        case _:
            return ""


def _choices(expected: str) -> list[str]:
    """Pydantic joins them as `'a', 'b' or 'c'`."""
    quoted = re.findall(r"'((?:[^'\\]|\\.)*)'", expected)
    return quoted or re.split(r", | or ", expected)


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text}."
