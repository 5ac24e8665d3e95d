"""References in texts: `${NAME}`, `${NAME:-default}`, `${file:path}`; `$${` stands for `${`.

What a reference brings may be a secret, so its value is marked and appears in no message.
"""

import os
import re
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from neorion.keel.base import nearest
from neorion.keel.config.document import (
    FINDINGS_MAX,
    TEXT_MAX_BYTES,
    UNPAIRED,
    DocumentTooLarge,
    Findings,
    Steps,
    YamlNode,
)

# Keys, tokens and certificates fit; a log file put here by mistake does not.
REFERENCED_FILE_MAX_BYTES = 64 << 10

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


@dataclass(slots=True)
class Sources:
    """The sources of referenced values: variables, and files in the folder of the configuration file."""

    env: Mapping[str, str]
    folder: Path
    # The remaining characters that references may add: a small file must not become large by many references.
    characters_left: int = TEXT_MAX_BYTES

    def resolved(self, reference: str) -> str:
        value = _value_of_reference(reference, self)
        self.characters_left -= len(value)
        if self.characters_left < 0:
            raise DocumentTooLarge
        return value


class _Unresolved(Exception):
    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


def resolve(root: YamlNode, sources: Sources, findings: Findings, kept: Collection[YamlNode] = ()) -> None:
    """Replaces references by their values, throughout the tree. Those of `kept` values stay as written."""
    waiting: list[tuple[YamlNode, Steps]] = [(root, ())]
    as_written = {id(node) for node in kept}
    while waiting:
        node, steps = waiting.pop()
        if id(node) in as_written:
            continue
        # Reversed, because the list is used as a stack: findings come in the order of the file.
        if isinstance(node.value, list):
            waiting.extend((child, (*steps, index)) for index, child in reversed([*enumerate(node.value)]))
        elif isinstance(node.value, dict):
            waiting.extend((child, (*steps, key)) for key, child in reversed(node.value.items()))
        elif isinstance(node.value, str) and "${" in node.value:
            try:
                _resolve_text(node, node.value, sources)
            except _Unresolved as problem:
                node.broken = True
                findings.add(node.place, steps, "config.reference", problem.sentence, problem.hint)
                if len(findings.found) >= FINDINGS_MAX:
                    raise DocumentTooLarge from None
            except DocumentTooLarge:
                limit = f"References bring more than {TEXT_MAX_BYTES >> 20} MiB into the file."
                findings.add(node.place, steps, "config.limit", limit)
                raise


def _resolve_text(node: YamlNode, text: str, sources: Sources) -> None:
    def value_of(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        if found[1] is None:
            raise _Unresolved("A reference begins here and does not end.", "Write $${ for a plain ${.")
        node.hidden = True
        return sources.resolved(found[1])

    whole = _REFERENCE.fullmatch(text)
    node.whole = whole is not None and whole[1] is not None
    node.value = _REFERENCE.sub(value_of, text)


def _value_of_reference(inner: str, sources: Sources) -> str:
    if inner.startswith("file:"):
        return _file_text(sources.folder / inner.removeprefix("file:"))
    found = _VARIABLE.fullmatch(inner)
    if found is None:
        raise _Unresolved(
            f"${{{inner[:40]}}} is not a valid reference.",
            "Write ${NAME}, ${NAME:-default} or ${file:path}, and $${ for a plain ${.",
        )
    name, default = found.groups()
    value = sources.env.get(name)
    if not value and default is not None:
        return default
    if value is None:
        near = nearest(name, sources.env)
        hint = f"Set {name}, or write ${{{name}:-default}}."
        if near is not None:
            hint = f'did you mean "${{{near}}}"? {hint}'
        raise _Unresolved(f"The environment variable {name} is not set.", hint)
    if UNPAIRED.search(value):
        raise _Unresolved(f"The environment variable {name} is not UTF-8 text.", "")
    return value


def _file_text(path: Path) -> str:
    """Reads a file without the line end that editors and `echo` append."""
    hint = "A relative path starts at the folder of this file."
    try:
        # Without O_NONBLOCK, opening a pipe without a writer would block for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is not possible"
        raise _Unresolved(f"The file {path} cannot be read: {reason}.", hint) from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _Unresolved(f"{path} is not a regular file.", hint)
        content = os.read(handle, REFERENCED_FILE_MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(content) > REFERENCED_FILE_MAX_BYTES:
        raise _Unresolved(f"The file {path} is larger than {REFERENCED_FILE_MAX_BYTES >> 10} KiB.", hint)
    try:
        return content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise _Unresolved(f"The file {path} is not UTF-8 text.", hint) from None
