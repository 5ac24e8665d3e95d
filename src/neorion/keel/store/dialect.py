"""The common SQL: the subset of SQLite and PostgreSQL, with the few keywords that differ translated.

Types are INTEGER (64 bits), REAL, TEXT (compared byte by byte) and BLOB, strictly kept on both. `?` stands for an argument.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from neorion.keel.base import Terminal

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "TEXT": 'TEXT COLLATE "C"', "BLOB": "BYTEA"}
_NAMES_FOLLOW = frozenset({"TABLE", "EXISTS", "ON", "REFERENCES", "INDEX"})
# Transactions and settings belong to the store; DEFERRABLE would let one change break another's commit.
_RESERVED_FIRST = frozenset(
    {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET", "RESET", "PRAGMA", "ATTACH", "DETACH"}
    | {"VACUUM", "COPY", "LISTEN", "LOCK"}
)  # fmt: skip
# Statements are written by hand, in the hundreds; a program that generates them without end must not fill the memory.
_CACHE = 1024


def statements(script: str) -> list[str]:
    """The statements of a script, without comments."""
    found, current = list[str](), list[str]()
    for kind, text in _tokens(script):
        if (kind, text) == ("sign", ";"):
            found.append("".join(current).strip())
            current.clear()
        else:
            current.append(text)
    found.append("".join(current).strip())
    return [statement for statement in found if statement]


@lru_cache(_CACHE)
def for_sqlite(sql: str) -> str:
    statement = _single(sql)
    strict = _keywords(statement)[:2] == ["CREATE", "TABLE"] and statement.endswith(")")
    return f"{statement} STRICT" if strict else statement


@lru_cache(_CACHE)
def for_postgres(sql: str) -> str:
    statement = _single(sql)
    defines = _keywords(statement)[:1] in (["CREATE"], ["ALTER"])
    translated, before = list[str](), ""
    for kind, text in _tokens(statement):
        # A table may have the name of a type.
        typed = defines and before not in _NAMES_FOLLOW
        translated.append(_translated(kind, text, typed=typed))
        before = text.upper() if kind == "word" else before
    return "".join(translated)


def _translated(kind: str, text: str, *, typed: bool) -> str:
    match kind:
        case "sign" if text == "?":
            return "%s"
        case "word" if typed:
            return _TYPES.get(text.upper(), text)
        case _:
            return text.replace("%", "%%")


def _single(sql: str) -> str:
    found = statements(sql)
    if len(found) != 1:
        raise Terminal("store.sql", f"{len(found)} statements stand where one is expected: {sql[:80]}")
    keywords = _keywords(found[0])
    if keywords and keywords[0] in _RESERVED_FIRST:
        raise Terminal(
            "store.sql", f"{keywords[0]} is not allowed in changes and queries: the store runs it."
        )
    if "DEFERRABLE" in keywords:
        raise Terminal("store.sql", "DEFERRABLE constraints are not part of the common SQL.")
    return found[0]


def _keywords(statement: str) -> list[str]:
    return [text.upper() for kind, text in _tokens(statement) if kind == "word"]


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(sql):
        kind = found.lastgroup or "sign"
        yield (kind, " " if kind == "comment" else found[0])
