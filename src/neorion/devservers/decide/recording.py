"""The recording of a terminal session: asciicast v2, with secrets taken out before anything is written."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from neorion.keel.base import Invalid

REDACTED: Final = "[redacted]"
# A longer text without a space is no secret that these patterns know.
_HELD_MAX: Final = 8192
_SECRETS: Final = (
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"\bhf_[A-Za-z0-9]{30,}|\bsk-[A-Za-z0-9_-]{20,}|\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    # The password in the address of a service.
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),
    # The value that an assignment gives to a name of a secret.
    re.compile(
        r"(?i)(?<=password=)\S+|(?<=passwd=)\S+|(?<=secret=)\S+|(?<=token=)\S+|(?<=_key=)\S+|(?<=apikey=)\S+"
    ),
)
_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_ENDS: Final = "-----END"
# No secret goes across one of these.
_BREAK: Final = re.compile(r"[\s\x00-\x1f\x7f]")
_encode = msgspec.json.Encoder().encode


class Redactor:
    """Takes secrets out of a text that comes in parts. A word is held back until its end is seen."""

    def __init__(self) -> None:
        self._held = ""
        self._in_key = False

    def feed(self, text: str) -> str:
        self._held += text
        complete = self._complete()
        done, self._held = self._held[:complete], self._held[complete:]
        return self._without_keys(_redacted(done))

    def flush(self) -> str:
        rest, self._held = self._held, ""
        return self._without_keys(_redacted(rest))

    def _complete(self) -> int:
        """The length of the held text that no later text can change."""
        if len(self._held) > _HELD_MAX:
            return len(self._held)
        begun = self._held.rfind("-----")
        if self._in_key or begun >= 0:
            # The lines around a private key are read whole.
            return self._held.rfind("\n") + 1
        ends = [found.end() for found in _BREAK.finditer(self._held)]
        return ends[-1] if ends else 0

    def _without_keys(self, text: str) -> str:
        kept: list[str] = []
        for line in text.splitlines(keepends=True) if self._in_key or "-----" in text else (text,):
            if self._in_key:
                self._in_key = _KEY_ENDS not in line
                if self._in_key:
                    continue
            found = _KEY_BEGINS.search(line)
            if found is not None:
                self._in_key = True
                kept.append(f"{line[: found.end()]}\r\n{REDACTED}\r\n")
                continue
            kept.append(line)
        return "".join(kept)


def _redacted(text: str) -> str:
    for pattern in _SECRETS:
        text = pattern.sub(REDACTED, text)
    return text


def header(size: tuple[int, int], started_s: int, title: str, env: Mapping[str, str]) -> bytes:
    columns, rows = size
    fields = {"version": 2, "width": columns, "height": rows, "timestamp": started_s, "title": title}
    return _encode({**fields, "env": dict(env)}) + b"\n"


def output_event(elapsed_s: float, text: str) -> bytes:
    return _encode([round(elapsed_s, 3), "o", text]) + b"\n"


def resize_event(elapsed_s: float, columns: int, rows: int) -> bytes:
    return _encode([round(elapsed_s, 3), "r", f"{columns}x{rows}"]) + b"\n"


@dataclass(frozen=True, slots=True)
class OutputPart:
    """A text of a recording, and the seconds since the text before it."""

    pause_s: float
    text: str


# Titles, the clipboard and other commands to the terminal itself: a recording only prints.
_TERMINAL_COMMANDS: Final = re.compile(r"\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)", re.DOTALL)
_Event = tuple[float, str, str]
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_header = msgspec.json.Decoder(dict[str, object]).decode


def parts(lines: Iterable[bytes]) -> Iterator[OutputPart]:
    """The printed texts of one or more recordings. Raises Invalid at a line of another format."""
    last = 0.0
    for number, line in enumerate(lines, start=1):
        try:
            if line.startswith(b"{"):
                _decode_header(line)
                last = 0.0
                continue
            elapsed, kind, text = _decode_event(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Invalid(
                "devservers.recording",
                f"Line {number} is not a line of a recording.",
                hint="Give a .cast file in the format asciicast v2.",
            ) from None
        if kind == "o":
            yield OutputPart(max(0.0, elapsed - last), _TERMINAL_COMMANDS.sub("", text))
            last = elapsed
