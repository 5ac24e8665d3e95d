"""The chain of evidence: each line carries the hash of everything before it and of itself."""

import hashlib
import re
from typing import Final, NamedTuple

import msgspec

GENESIS: Final = "0" * 64
_LINE: Final = re.compile(rb'\{"hash":"([0-9a-f]{64})","entry":(\{.*\})\}', re.DOTALL)


class Link(NamedTuple):
    """One line of evidence, and the hash that the next one builds on."""

    line: bytes
    head: str


class ChainProblem(NamedTuple):
    """A place at which a chain is broken, and the reason."""

    line: int
    sentence: str


class Chain(NamedTuple):
    """The contents of a verified file of evidence."""

    head: str
    entries: list[dict[str, object]]
    problems: list[ChainProblem]


def link(head: str, entry: object) -> Link:
    """The line of one entry after the line whose hash is `head`."""
    body = msgspec.json.encode(entry)
    digest = _digest(head, body)
    return Link(b'{"hash":"' + digest.encode() + b'","entry":' + body + b"}\n", digest)


def read_chain(content: bytes) -> Chain:
    """Recomputes every hash. Reading stops at the first broken line: nothing after it can be trusted."""
    head, entries = GENESIS, list[dict[str, object]]()
    if content and not content.endswith(b"\n"):
        return Chain(head, entries, [ChainProblem(content.count(b"\n") + 1, "The last line is incomplete.")])
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            return Chain(
                head, entries, [ChainProblem(number, "The line does not have the form of evidence.")]
            )
        expected = _digest(head, found[2])
        if expected != found[1].decode():
            return Chain(head, entries, [ChainProblem(number, "The hash does not fit the line.")])
        head = expected
        entries.append(msgspec.json.decode(found[2], type=dict[str, object]))
    return Chain(head, entries, [])


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest(head: str, body: bytes) -> str:
    return hashlib.sha256(head.encode() + body).hexdigest()
