"""Rules for names and prose, as functions from source files to their violations.

A violation is a rule, a path and what is wrong there. Those of today stand in a list that may only shrink.
"""

import ast
import inspect
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from tools.tidy import Source

# Words that name no part of a control plane. Names are compared word by word: `replace` does not contain `place`.
BANNED_IN_NAMES = frozenset(
    [
        "around",
        "asked",
        "asking",
        "badge",
        "bell",
        "bells",
        "book",
        "bury",
        "crier",
        "cry",
        "curtain",
        "curtains",
        "deck",
        "desk",
        "doom",
        "doomed",
        "door",
        "errand",
        "errands",
        "farewell",
        "fate",
        "giving",
        "gossip",
        "hand",
        "hands",
        "hear",
        "heard",
        "held",
        "herald",
        "inside",
        "lives",
        "look",
        "lookout",
        "looks",
        "mirror",
        "mirrors",
        "nursery",
        "obey",
        "outfit",
        "outfitter",
        "outfitting",
        "papers",
        "piece",
        "place",
        "reign",
        "said",
        "scene",
        "shelf",
        "stage",
        "stir",
        "storm",
        "surroundings",
        "teller",
        "telling",
        "tidings",
        "told",
        "wallet",
        "wanted",
        "way",
        "wish",
        "words",
        "yard",
    ]
)
BANNED_IN_PROSE = frozenset(
    ["anew", "nobody", "somebody", "whoever", "whomever", "pretend", "pretended", "pretends"]
)
BANNED_AT_THE_START = frozenset(
    [
        "as",
        "for",
        "how",
        "its",
        "nobody",
        "of",
        "somebody",
        "what",
        "whatever",
        "whether",
        "who",
        "whoever",
        "whose",
    ]
)
# "is no name", where "is not a valid name" is meant.
NOT_A_VALID = re.compile(r"\b(is|are) no (?!longer\b)", re.IGNORECASE)
DECLARATIONS = frozenset({"command", "group", "option", "argument", "mount", "App"})

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PROSE_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, order=True, slots=True)
class Violation:
    """One break of a rule. `what` is the name at fault; it is empty where the words of a file are counted."""

    rule: str
    path: str
    what: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.rule, self.path, self.what)))


def names(source: Source) -> Iterator[Violation]:
    """Names of modules, classes and functions contain no banned word."""
    found = [source.path.rpartition("/")[2].removesuffix(".py")]
    found += [
        node.name
        for node in _nodes(source.text)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for name in found:
        if not BANNED_IN_NAMES.isdisjoint(word.lower() for word in _WORD.findall(name)):
            yield Violation("name", source.path, name)


def prose(source: Source) -> Iterator[Violation]:
    """Docstrings and comments contain no banned word."""
    texts = [doc for _, doc in _docstrings(source.text)] + list(_comments(source.text))
    for text in texts:
        for word in _PROSE_WORD.findall(text.lower()):
            if word in BANNED_IN_PROSE:
                yield Violation("prose", source.path)


def messages(source: Source) -> Iterator[Violation]:
    """Errors, hints and other texts contain no banned word. A literal without a space is a value and not a text."""
    docs = {doc for _, doc in _docstrings(source.text)}
    for node in _nodes(source.text):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and inspect.cleandoc(node.value) not in docs
        ):
            words = set(_PROSE_WORD.findall(node.value.lower()))
            if " " in node.value and not words.isdisjoint(BANNED_IN_PROSE):
                yield Violation("message", source.path)


def guides(pages: Iterable[Source]) -> Iterator[Violation]:
    """Guides contain no banned word."""
    for page in pages:
        for word in _PROSE_WORD.findall(page.text.lower()):
            if word in BANNED_IN_PROSE:
                yield Violation("guide", page.path)


def docstrings(source: Source) -> Iterator[Violation]:
    """The first word of a docstring is the thing or a verb."""
    for _, doc in _docstrings(source.text):
        if _first_word(doc) in BANNED_AT_THE_START:
            yield Violation("docstring", source.path)


def helps(source: Source) -> Iterator[Violation]:
    """A help text is a sentence that begins with a verb or the thing."""
    for text in _helps(source.text):
        if _first_word(text) in BANNED_AT_THE_START or not _is_sentence(text) or NOT_A_VALID.search(text):
            yield Violation("help", source.path)


def hints(source: Source) -> Iterator[Violation]:
    """A hint is one imperative sentence, capitalised, with a full stop."""
    for node in _nodes(source.text):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            text = _text(node.value)
            if text and not (_is_sentence(text) and ". " not in text):
                yield Violation("hint", source.path)


def duplicate_classes(sources: Iterable[Source]) -> Iterator[Violation]:
    """A public class name stands for one thing within a system."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source in sources:
        parts = source.path.split("/")
        if parts[:2] != ["src", "neorion"] or len(parts) < 4:
            continue
        for node in ast.parse(source.text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[parts[2], node.name].append(source.path)
    for (system, name), paths in places.items():
        if len(paths) > 1:
            yield Violation("duplicate", f"src/neorion/{system}", name)


RULES: tuple[Callable[[Source], Iterator[Violation]], ...] = (
    names,
    prose,
    messages,
    docstrings,
    helps,
    hints,
)


def violations(sources: Iterable[Source]) -> Counter[str]:
    """Every violation in the product's own code, and how often it occurs."""
    own = [one for one in sources if one.path.startswith("src/") and "/gen/" not in one.path]
    found = [violation for source in own for rule in RULES for violation in rule(source)]
    return Counter(map(str, [*found, *duplicate_classes(own)]))


def listed(text: str) -> Counter[str]:
    """The list: a count and a violation on each line."""
    lines = (line.split(" ", 1) for line in text.splitlines() if line)
    return Counter({violation: int(count) for count, violation in lines})


def as_list(found: Counter[str]) -> str:
    return "".join(f"{count} {violation}\n" for violation, count in sorted(found.items()))


def compared(found: Counter[str], allowed: Counter[str]) -> list[str]:
    """New violations, and entries of the list that no longer apply."""
    grown = [
        f"{found[one]} times, {allowed[one]} allowed: {one}" for one in found if found[one] > allowed[one]
    ]
    stale = [f"lower it to {found[one]}: {one}" for one in allowed if found[one] < allowed[one]]
    return sorted(grown) + sorted(stale)


@lru_cache(maxsize=1)
def _nodes(text: str) -> tuple[ast.AST, ...]:
    """Parsed and walked once for all rules, which read one file after the other."""
    return tuple(ast.walk(ast.parse(text)))


def _docstrings(text: str) -> Iterator[tuple[str, str]]:
    for node in _nodes(text):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node)
            if doc:
                yield getattr(node, "name", ""), doc


def _comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def _helps(source: str) -> Iterator[str]:
    for node in _nodes(source):
        if isinstance(node, ast.Call) and _called(node) in DECLARATIONS:
            yield from (text for one in node.keywords if one.arg == "help" and (text := _text(one.value)))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            declared = any(
                isinstance(one, ast.Call) and _called(one) == "command" for one in node.decorator_list
            )
            if declared and (doc := ast.get_docstring(node)):
                yield doc.partition("\n\n")[0]


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _text(node: ast.expr) -> str:
    """The words of a literal; of an f-string, with `…` for each value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in parts)
        case _:
            return ""


def _first_word(text: str) -> str:
    return (text.split() or [""])[0].strip(".,:;'\"`").lower()


def _is_sentence(text: str) -> bool:
    text = text.strip()
    return not text[:1].islower() and text.endswith((".", ".)", "…"))
