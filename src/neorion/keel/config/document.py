"""Reads YAML text into a tree in which every value has its position.

Accepts a subset that needs no knowledge of YAML: one document, no anchors, no tags, no duplicate keys.
It is read from parser events and not from PyYAML's own tree, whose recursion a deep file would overflow.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from neorion.keel.base import Finding, Severity

Step = str | int
Steps = tuple[Step, ...]
Scalar = str | int | float | bool | None

# Pools describe a fleet of ten thousand nodes in a few kilobytes, so a larger file is a mistake or an attack.
TEXT_MAX_BYTES = 1 << 20
NODES_MAX = 50_000
DEPTH_MAX = 64
# More than a person corrects at once; the rest is reported in the next run.
FINDINGS_MAX = 100

# libyaml is twenty times as fast. A Python built without it reads the same files.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_INT_MAX_DIGITS = 19
_SHORT = 40
# Escapes in quotes and bytes of the environment can contain unpaired surrogates, which no later step could write.
UNPAIRED = re.compile("[\ud800-\udfff]")
_QUOTE = "If it is meant as text, put it in quotes."


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Counted from one, as editors do."""

    line: int
    column: int


@dataclass(slots=True)
class YamlNode:
    """A value, its position, and the position of its key (its own position, where it has none)."""

    place: Position
    key_place: Position
    value: "Scalar | list[YamlNode] | dict[str, YamlNode]"
    # The text of a scalar as written. Keys are texts, whatever they look like.
    text: str = ""
    # The value came from outside the file and may be a secret: it appears in no message.
    hidden: bool = False
    # The whole scalar is one reference: its text may also fill a number or true/false.
    whole: bool = False
    # A finding exists for this value; a validation error about it would only repeat it.
    broken: bool = False


@dataclass(slots=True)
class Findings:
    """Collects what is wrong with one file."""

    file: str
    found: list[tuple[Position, Finding]] = field(default_factory=list[tuple[Position, Finding]])

    def add(self, place: Position, steps: Steps, code: str, sentence: str, hint: str = "") -> None:
        subject = f"{self.file}:{place.line}:{place.column} {dotted(steps)}".rstrip()
        self.found.append((place, Finding(Severity.ERROR, code, subject, sentence, hint)))

    def sorted(self) -> tuple[Finding, ...]:
        by_place = sorted(self.found, key=lambda pair: pair[0])
        return tuple(finding for _, finding in by_place[:FINDINGS_MAX])


class DocumentTooLarge(Exception):
    """The file exceeds a limit or is unreadable. The finding that states the reason has been added."""


def dotted(steps: Steps) -> str:
    """`pools[0].scaling.min_nodes`."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{short(step)}" if text else short(step)
    return text


def short(text: str) -> str:
    """The beginning of a text, enough to recognise it."""
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def read_scalar(text: str) -> Scalar:
    """true, false, null and numbers as JSON writes them; all else is text: `no`, `22:30`, `0755`, `2026-01-01`.

    Raises OverflowError for a number that 64 bits do not hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    if found[1] is None and found[2] is None:
        if len(text.lstrip("-")) > _INT_MAX_DIGITS or not -(2**63) <= int(text) < 2**63:
            raise OverflowError(text)
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise OverflowError(text)
    return number


def decode(content: bytes, findings: Findings) -> str:
    if len(content) > TEXT_MAX_BYTES:
        findings.add(
            Position(1, 1), (), "config.limit", f"The file is larger than {TEXT_MAX_BYTES >> 20} MiB."
        )
        raise DocumentTooLarge
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        place = _position_of(before, len(before))
    findings.add(place, (), "config.yaml", "The file is not UTF-8 text.", "Save it as UTF-8.")
    raise DocumentTooLarge


def read(text: str, findings: Findings) -> YamlNode:
    """The tree of a text, with everything wrong in its form noted in `findings`."""
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        findings.add(
            _position_of(text, bad.start()),
            (),
            "config.yaml",
            f"The character U+{ord(bad[0]):04X} cannot stand in a YAML file.",
            'Write it as an escape inside double quotes, as in "\\u0007".',
        )
        raise DocumentTooLarge
    builder = _Builder(findings)
    for event in _events(text, findings):
        builder.take(event)
    return builder.root or YamlNode(Position(1, 1), Position(1, 1), None)


def _position_of(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _events(text: str, findings: Findings) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)  # pyright: ignore[reportUnknownMemberType] -- untyped
    except yaml.MarkedYAMLError as error:
        problem = str(error.problem or error.context or "the text ends in the middle")
        mark = error.problem_mark or error.context_mark
        place = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        hint = "Indent with spaces; YAML takes no tabs." if "\\t" in problem or "tab" in problem else ""
        findings.add(place, (), "config.yaml", f"This is not YAML: {problem}.", hint)
        raise DocumentTooLarge from None
    except yaml.YAMLError:
        findings.add(Position(1, 1), (), "config.yaml", "This is not YAML.")
        raise DocumentTooLarge from None


@dataclass(slots=True)
class _OpenContainer:
    """A list or mapping whose end has not been read, and the key whose value comes next."""

    node: YamlNode
    steps: Steps
    key: YamlNode | None = None


class _Builder:
    """Puts the tree together from parser events, without recursion."""

    def __init__(self, findings: Findings) -> None:
        self.root: YamlNode | None = None
        self._findings = findings
        self._open: list[_OpenContainer] = []
        self._count = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._attach(self._scalar(event))
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                node = self._node(event, [] if isinstance(event, yaml.SequenceStartEvent) else {})
                self._open.append(_OpenContainer(node, self._steps()))
                if len(self._open) > DEPTH_MAX:
                    self._stop(node, f"Values are nested more than {DEPTH_MAX} deep.")
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._attach(self._open.pop().node)
            case yaml.AliasEvent():
                node = self._node(event, None)
                self._refuse(node, "config.alias", "Aliases (*name) are not used here.", _QUOTE)
                self._attach(node)
            case yaml.DocumentStartEvent() if self.root is not None:
                node = self._node(event, None)
                self._stop(node, "A second document begins here; a file holds one.", "config.yaml")
            case _:
                pass

    def _node(self, event: yaml.Event, value: "Scalar | list[YamlNode] | dict[str, YamlNode]") -> YamlNode:
        mark = event.start_mark
        place = Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)
        node = YamlNode(place, place, value)
        self._count += 1
        if self._count > NODES_MAX:
            self._stop(node, f"The file holds more than {NODES_MAX} values.")
        tag, anchor = getattr(event, "tag", None), getattr(event, "anchor", None)
        if tag is not None:
            self._refuse(node, "config.tag", f"Tags ({tag}) are not used here.", _QUOTE)
        elif anchor is not None and not isinstance(event, yaml.AliasEvent):
            self._refuse(node, "config.alias", f"Anchors (&{anchor}) are not used here.", _QUOTE)
        return node

    def _scalar(self, event: yaml.ScalarEvent) -> YamlNode:
        node = self._node(event, event.value)
        node.text = event.value
        if UNPAIRED.search(node.text):
            self._refuse(node, "config.yaml", "Half of a surrogate pair is not a valid character.")
            node.value = None
        elif event.implicit[0]:  # neither quoted nor a block
            try:
                node.value = read_scalar(node.text)
            except OverflowError:
                self._refuse(node, "config.wrong_value", "The number does not fit into 64 bits.", _QUOTE)
        return node

    def _attach(self, node: YamlNode) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        children = parent.node.value
        if isinstance(children, list):
            children.append(node)
        elif parent.key is None:
            parent.key = node
            self._check_key(node)
        elif isinstance(children, dict):
            key, parent.key = parent.key, None
            node.key_place = key.place
            if not key.broken:
                children[key.text] = node

    def _check_key(self, key: YamlNode) -> None:
        known = self._open[-1].node.value
        if key.broken or not isinstance(known, dict):
            return
        if isinstance(key.value, list | dict):
            self._refuse(key, "config.yaml", "A key is a text; a list or mapping cannot be one.")
        elif key.text == "<<":
            self._refuse(key, "config.alias", "Merge keys (<<) are not used here.", "Write the keys out.")
        elif "${" in key.text:
            self._refuse(key, "config.reference", "References are resolved in values, not in keys.")
        elif key.text in known:
            first = known[key.text].key_place
            sentence = f'The key "{short(key.text)}" stands here twice; the first is on line {first.line}.'
            self._refuse(key, "config.duplicate_key", sentence, "Remove one of them.")

    def _steps(self) -> Steps:
        """The path of the value that comes next."""
        if not self._open:
            return ()
        parent = self._open[-1]
        if isinstance(parent.node.value, list):
            return (*parent.steps, len(parent.node.value))
        return (*parent.steps, parent.key.text) if parent.key is not None else parent.steps

    def _refuse(self, node: YamlNode, code: str, sentence: str, hint: str = "") -> None:
        node.broken = True
        self._findings.add(node.place, self._steps(), code, sentence, hint)

    def _stop(self, node: YamlNode, sentence: str, code: str = "config.limit") -> None:
        self._findings.add(node.place, (), code, sentence)
        raise DocumentTooLarge
