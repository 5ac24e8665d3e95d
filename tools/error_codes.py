"""Finds every error code in the source: each is a literal where it is raised."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from neorion.keel.base import FAMILIES

_CLASSES = {family.__name__: name for name, family in FAMILIES.items()}


@dataclass(frozen=True, order=True, slots=True)
class Raised:
    """One place where an error is made."""

    code: str
    family: str
    sentence: str
    hint: str


def raised_in(source: Path) -> list[Raised]:
    """Every distinct error below a folder, by code."""
    trees = [_nodes(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))]
    families = dict(_CLASSES)
    # Classes that take something else than a code have theirs inside.
    closed: set[str] = set()
    for tree in trees:
        families |= dict(_subclasses(tree))
        closed |= set(_with_own_arguments(tree)) - _CLASSES.keys()
    return sorted({one for tree in trees for one in _in_tree(tree, families, closed)})


def _nodes(text: str) -> list[ast.AST]:
    """Those that the rest looks at: walking is what takes the time."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef | ast.Call)]


def _subclasses(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        match node:
            case ast.ClassDef(name=name, bases=[ast.Name(id=base), *_]) if base in _CLASSES:
                yield name, _CLASSES[base]
            case _:
                pass


def _with_own_arguments(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ClassDef) and any(
            isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in node.body
        ):
            yield node.name


def _in_tree(nodes: Iterable[ast.AST], families: dict[str, str], closed: set[str]) -> Iterator[Raised]:
    for node in nodes:
        match node:
            case ast.ClassDef(name=name) if name in families:
                yield from _made_by(node, families[name])
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str() as code), *_]) if (
                name in families and name not in closed
            ):
                yield _raised(node, code, families[name])
            case _:
                pass


def _made_by(made: ast.ClassDef, family: str) -> Iterator[Raised]:
    """An error class of its own passes its code on to the family it belongs to."""
    for node in ast.walk(made):
        match node:
            case ast.Call(func=ast.Attribute(attr="__init__"), args=[ast.Constant(value=str() as code), *_]):
                yield _raised(node, code, family)
            case _:
                pass


def _raised(call: ast.Call, code: str, family: str) -> Raised:
    hint = next((word.value for word in call.keywords if word.arg == "hint"), None)
    return Raised(code, family, _words(call.args[1]) if len(call.args) > 1 else "", _words(hint))


def _words(node: ast.expr | None) -> str:
    """A text as it reads, with the names of what is filled in."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_words(part) for part in parts)
        case ast.FormattedValue(value=value):
            return f"‹{_name(value)}›"
        case ast.BinOp(left=left, right=right):
            return _words(left) + _words(right)
        case _:
            return ""


def _name(node: ast.expr) -> str:
    """The word that tells a reader most about an expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.Call(func=ast.Name(), args=[value, *_]):
            return _name(value)
        case (
            ast.Call(func=ast.Attribute(attr="join"), args=[value, *_])
            | ast.Call(func=ast.Attribute(value=value))
        ):
            return _name(value)
        case _:
            return "…"
