"""Finds which tests carry out which attack, from markers and from `tests/attacks/attacks.yaml`."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LIST = Path("tests/attacks/attacks.yaml")
_REASONS = {"open": "**Open.**", "later": "Later.", "design": "By design."}
_FIELDS = {"attack", "guard", "tests", *_REASONS}


class BrokenList(ValueError):
    """The list and the tests do not agree."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, what refuses it, and the tests that carry it out."""

    group: str
    name: str
    attack: str
    guard: str
    tests: tuple[str, ...]


def attacks(root: Path) -> list[Attack]:
    """All attacks of the list. A marker without an attack, a test that is gone, and an attack without either are errors."""
    marked = _marked(root)
    found: list[Attack] = []
    listed: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load((root / LIST).read_text())
    for group, entries in listed.items():
        for name, entry in entries.items():
            if unknown := entry.keys() - _FIELDS:
                raise BrokenList(f"{name}: unknown field {', '.join(sorted(unknown))}")
            tests = (*marked.pop(name, ()), *entry.get("tests", ()))
            reasons = [f"{text} {entry[key]}" for key, text in _REASONS.items() if key in entry]
            if not tests and not reasons:
                raise BrokenList(f"{name}: no test carries it out, and no reason is given")
            for test in entry.get("tests", ()):
                _check_exists(root, name, test)
            guard = " ".join([*reasons, *([entry["guard"]] if "guard" in entry else [])])
            found.append(Attack(group, name, entry["attack"], guard, tests))
    if marked:
        raise BrokenList(f"markers without an attack in {LIST}: {', '.join(sorted(marked))}")
    return found


def page(found: list[Attack]) -> str:
    """The attacks as tables, one for each group."""
    parts: list[str] = []
    for group in dict.fromkeys(one.group for one in found):
        rows = [
            f"| {one.attack} | {one.guard} | {'<br>'.join(f'`{test}`' for test in one.tests)} |"
            for one in found
            if one.group == group
        ]
        parts.append("\n".join([f"## {group}", "", "| attack | guard | tests |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def _check_exists(root: Path, name: str, test: str) -> None:
    path, _, function = test.partition("::")
    file = root / path
    if not file.is_file() or function not in {one.name for one in _functions(ast.parse(file.read_text()))}:
        raise BrokenList(f"{name}: there is no test {test}")


def _marked(root: Path) -> dict[str, tuple[str, ...]]:
    """The tests that carry a marker, by the attack's name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "mark.attack(" not in text:
            continue
        tree = ast.parse(text)
        whole = [name for node in tree.body if _assigns_marks(node) for name in _names(node)]
        for function in _functions(tree):
            own = [name for decorator in function.decorator_list for name in _names(decorator)]
            for name in dict.fromkeys([*whole, *own]):
                found[name].append(f"{path.relative_to(root).as_posix()}::{function.name}")
    return {name: tuple(tests) for name, tests in found.items()}


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def _assigns_marks(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
    )


def _names(node: ast.AST) -> Iterator[str]:
    """The arguments of each `pytest.mark.attack(...)` in here."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "attack":
            yield from (
                one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )
