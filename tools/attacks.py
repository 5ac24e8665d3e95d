"""Finds the tests of each attack and each fault, from markers in the tests and from the two lists in `tests/attacks`."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

# A name, or a number for a row that needs no name.
Key: TypeAlias = str | int
_REASONS = {"open": "**Open:**", "later": "**Not yet:**", "design": "By design:"}


class BrokenList(ValueError):
    """A list and the tests do not agree."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """A list with its marker, the field that holds the answer, and how many numbers it has."""

    marker: str
    answer: str
    rows: int

    @property
    def file(self) -> Path:
        return Path(f"tests/attacks/{self.marker}s.yaml")


ATTACKS = Catalog("attack", "guard", 53)
FAULTS = Catalog("fault", "expected", 62)


@dataclass(frozen=True, slots=True)
class Entry:
    """One attack or fault, the answer to it, and the tests that carry it out."""

    group: str
    number: int | None
    text: str
    answer: str
    tests: tuple[str, ...]
    # Which reason it gives for what is not tested, or "tested".
    state: str


def entries(root: Path, catalog: Catalog) -> list[Entry]:
    """All entries of a list.

    A marker without an entry, a test that does not exist, a missing number, and an entry without tests and reason
    are errors.
    """
    marked = _marked(root, catalog.marker)
    listed: dict[str, dict[Key, dict[str, Any]]] = yaml.safe_load((root / catalog.file).read_text())
    rows = {key: entry for group in listed.values() for key, entry in group.items()}
    tests = _by_key(rows, marked, catalog)
    found: list[Entry] = []
    for group, members in listed.items():
        for key, entry in members.items():
            made = _entry(group, key, entry, catalog)
            for test in made.tests:
                _check_exists(root, key, test)
            made = Entry(
                made.group, made.number, made.text, made.answer, (*tests[key], *made.tests), made.state
            )
            if not made.tests and made.state == "tested":
                raise BrokenList(f"{key}: no test carries it out, and no reason is given")
            found.append(made)
    if missing := set(range(1, catalog.rows + 1)) - {one.number for one in found}:
        raise BrokenList(
            f"numbers without an entry in {catalog.file}: {', '.join(map(str, sorted(missing)))}"
        )
    return found


def page(found: list[Entry], catalog: Catalog) -> str:
    """The entries as tables, one for each group, below a line that counts them."""
    counted = Counter(one.state for one in found)
    words = {"tested": "tested", "open": "open", "later": "not yet tested", "design": "refused by design"}
    summary = ", ".join(f"{counted[state]} {word}" for state, word in words.items() if counted[state])
    parts = [f"{len(found)} entries for {catalog.rows} numbers: {summary}.\n"]
    for group in dict.fromkeys(one.group for one in found):
        rows = [
            f"| {one.number or ''} | {one.text} | {one.answer} | {'<br>'.join(f'`{test}`' for test in one.tests)} |"
            for one in found
            if one.group == group
        ]
        head = [f"| | {catalog.marker} | {catalog.answer} | tests |", "|---|---|---|---|"]
        parts.append("\n".join([f"## {group}", "", *head, *rows, ""]))
    return "\n".join(parts)


def _entry(group: str, key: Key, entry: dict[str, Any], catalog: Catalog) -> Entry:
    if unknown := entry.keys() - {catalog.marker, catalog.answer, "number", "tests", *_REASONS}:
        raise BrokenList(f"{key}: unknown field {', '.join(sorted(unknown))}")
    reasons = [name for name in _REASONS if name in entry]
    texts = [f"{_REASONS[name]} {entry[name]}" for name in reasons]
    return Entry(
        group,
        key if isinstance(key, int) else entry.get("number"),
        entry[catalog.marker],
        " ".join([*texts, *([entry[catalog.answer]] if catalog.answer in entry else [])]),
        tuple(entry.get("tests", ())),
        reasons[0] if reasons else "tested",
    )


def _by_key(
    rows: dict[Key, dict[str, Any]], marked: dict[Key, tuple[str, ...]], catalog: Catalog
) -> dict[Key, tuple[str, ...]]:
    """The marked tests by the key of their entry. A marker gives that key, or a number that only one entry has."""
    found: defaultdict[Key, tuple[str, ...]] = defaultdict(tuple)
    unknown: list[str] = []
    for key, tests in marked.items():
        named = [key] if key in rows else [name for name, one in rows.items() if one.get("number") == key]
        if len(named) == 1:
            found[named[0]] += tests
        else:
            unknown.append(
                f"{key} ({tests[0]})" + (f": use one of {', '.join(map(str, named))}" if named else "")
            )
    if unknown:
        raise BrokenList(f"markers without one entry in {catalog.file}: {', '.join(unknown)}")
    return found


def _check_exists(root: Path, key: Key, test: str) -> None:
    path, _, function = test.partition("::")
    file = root / path
    if not file.is_file() or function not in _all_names(ast.parse(file.read_text())):
        raise BrokenList(f"{key}: test {test} does not exist")


def _marked(root: Path, marker: str) -> dict[Key, tuple[str, ...]]:
    """The tests that carry a marker, by its arguments."""
    found: defaultdict[Key, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text()
        if f"mark.{marker}(" not in text:
            continue
        tree = ast.parse(text)
        whole = [key for node in tree.body if _assigns_marks(node) for key in _keys(node, marker)]
        for function in _functions(tree):
            own = [key for decorator in function.decorator_list for key in _keys(decorator, marker)]
            for key in dict.fromkeys([*whole, *own]):
                found[key].append(f"{path.relative_to(root).as_posix()}::{function.name}")
    return {key: tuple(tests) for key, tests in found.items()}


def _all_names(tree: ast.Module) -> set[str]:
    """The functions of a file, with the methods of the contracts that it holds."""
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def _assigns_marks(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
    )


def _keys(node: ast.AST, marker: str) -> Iterator[Key]:
    """The arguments of each `pytest.mark.MARKER(...)` in here."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == marker:
            yield from (
                one.value
                for one in call.args
                if isinstance(one, ast.Constant) and isinstance(one.value, str | int)
            )
