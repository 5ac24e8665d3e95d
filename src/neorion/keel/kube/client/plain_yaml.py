"""The YAML that programs write into kubeconfigs: maps and lists in blocks, one plain or simply quoted text to a line.

The library for all of YAML takes a tenth of a short command's time to load. What is written in any other way, or could
mean something else than a text, is left to it.
"""

import re
from typing import Final, NamedTuple

Value = dict[str, "Value"] | list["Value"] | str | bool | None


class NotPlain(Exception):
    """Only the library can say what it means."""


class _Line(NamedTuple):
    indent: int
    text: str


_FOREIGN: Final = re.compile(r"[^\n -~]|#|^(?:---|\.\.\.|%)", re.MULTILINE)
_ENTRY: Final = re.compile(r"([A-Za-z][A-Za-z0-9_./-]*):(?: +(\S.*?))? *")
# No number, time or mark of YAML begins so.
_PLAIN: Final = re.compile(r"-{0,2}[A-Za-z/][A-Za-z0-9+/=_.:@-]*")
_QUOTED: Final = re.compile(r'"([^"\\]*)"|\'([^\']*)\'')
# What YAML takes for something else than a text, in any letters.
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_MEANT: Final[dict[str, Value]] = {"true": True, "false": False, "null": None}
_ITEM: Final = "-"


def read_plain(text: str) -> Value:
    """Raises NotPlain."""
    if _FOREIGN.search(text):
        raise NotPlain
    lines: list[_Line] = []
    for raw in text.split("\n"):
        rest = raw.strip(" ")
        indent = len(raw) - len(raw.lstrip(" "))
        while rest.startswith("- "):
            lines.append(_Line(indent, _ITEM))
            inner = rest[1:].lstrip(" ")
            indent += len(rest) - len(inner)
            rest = inner
        if rest:
            lines.append(_Line(indent, rest))
    if not lines or lines[0].indent:
        raise NotPlain
    value, end = _block(lines, 0)
    if end != len(lines):
        raise NotPlain
    return value


def _block(lines: list[_Line], start: int) -> tuple[Value, int]:
    """The value that begins at a line, and the line behind it."""
    if lines[start].text == _ITEM:
        return _list(lines, start)
    if _ENTRY.fullmatch(lines[start].text):
        return _map(lines, start)
    if start + 1 < len(lines) and lines[start + 1].indent >= lines[start].indent:
        raise NotPlain
    return _scalar(lines[start].text), start + 1


def _list(lines: list[_Line], start: int) -> tuple[Value, int]:
    indent, at, found = lines[start].indent, start, list[Value]()
    while at < len(lines) and lines[at] == (indent, _ITEM):
        if at + 1 == len(lines) or lines[at + 1].indent <= indent:
            raise NotPlain
        item, at = _block(lines, at + 1)
        found.append(item)
    return found, at


def _map(lines: list[_Line], start: int) -> tuple[Value, int]:
    indent, at, found = lines[start].indent, start, dict[str, Value]()
    while at < len(lines) and lines[at].indent == indent and lines[at].text != _ITEM:
        entry = _ENTRY.fullmatch(lines[at].text)
        if entry is None or entry[1] in found or entry[1].lower() in _WORDS:
            raise NotPlain
        at += 1
        deeper = at < len(lines) and lines[at].indent > indent
        # A list may stand as far left as the name of what it is.
        listed = at < len(lines) and lines[at] == (indent, _ITEM)
        if entry[2] is None:
            found[entry[1]], at = _block(lines, at) if deeper or listed else (None, at)
        elif deeper or listed:
            raise NotPlain
        else:
            found[entry[1]] = _scalar(entry[2])
    return found, at


def _scalar(text: str) -> Value:
    if text in _MEANT:
        return _MEANT[text]
    if text in ("{}", "[]"):
        return {} if text == "{}" else []
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1] if quoted[1] is not None else quoted[2]
    if not _PLAIN.fullmatch(text) or text.lower() in _WORDS or text.endswith(":"):
        raise NotPlain
    return text
