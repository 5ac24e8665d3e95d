"""Abilities of a stream (colour, width), and escaping of text that could control the terminal."""

import os
import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Self, TextIO

from neorion.keel.cli.shared_options import ColorMode

# The width to assume when a terminal does not report one.
_USUAL_WIDTH: Final = 80

# Controls and escapes, marks that change the reading direction, and invisible characters.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Colours and weights, but not the code that makes text invisible.
_COLOUR: Final = r"\x1b\[(?:(?!8[;m])[0-9]{1,3}(?:;(?!8[;m])[0-9]{1,3}){0,9})?m"
_UNSAFE_OUTPUT: Final = re.compile(rf"{_COLOUR}|\r\n?|(?![\t\n]){_UNSAFE.pattern}")


class Tone(StrEnum):
    """Meanings of colours; the value is the terminal's code."""

    GOOD = "32"
    WARNING = "33"
    BAD = "31"
    HEADING = "1"
    QUIET = "2"


class TerminalStream(NamedTuple):
    """A stream and its abilities. `width` is None where it is not a terminal: nothing is shortened there."""

    stream: TextIO
    color: bool
    width: int | None

    @classmethod
    def of(cls, stream: TextIO, mode: ColorMode, env: Mapping[str, str]) -> Self:
        return cls(stream, wants_color(stream, mode, env), _width(stream, env))

    def paint(self, text: str, tone: Tone | None) -> str:
        return f"\x1b[{tone}m{text}\x1b[0m" if self.color and tone is not None and text else text

    def write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def wants_color(stream: TextIO, mode: ColorMode, env: Mapping[str, str]) -> bool:
    """Decides by `--color`, then NO_COLOR, FORCE_COLOR, TERM, and whether the stream is a terminal."""
    if mode is not ColorMode.AUTO:
        return mode is ColorMode.ALWAYS
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return is_live(stream, env)


def is_live(stream: TextIO, env: Mapping[str, str]) -> bool:
    """True for a terminal that understands escape sequences."""
    return env.get("TERM") != "dumb" and stream.isatty()


def escape(text: str) -> str:
    """Escapes controls and invisible characters, because names and messages can come from other users."""
    return _UNSAFE.sub(lambda found: _written(ord(found[0])), text)


def printable(text: str) -> str:
    """The output of a program, for a terminal: lines, tabs and colours are kept, everything else is escaped.

    A bare carriage return begins a line, because it would let one line overwrite another.
    """
    return _UNSAFE_OUTPUT.sub(_kept_or_escaped, text)


def _kept_or_escaped(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith("\r"):
        return "\n"
    return text if len(text) > 1 else _written(ord(text))


def cells(text: str) -> int:
    """The number of columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def _written(code: int) -> str:
    if code < 0x100:
        return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _width(stream: TextIO, env: Mapping[str, str]) -> int | None:
    if not stream.isatty():
        return None
    columns = env.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH
