"""From pydantic's path of an error to the value in the file, and to the keys that would have been right there."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel

from neorion.keel.config.document import Steps, YamlNode


@dataclass(frozen=True, slots=True)
class Located:
    """The deepest value on the path that the file holds, and what of the path lies beyond it."""

    node: YamlNode
    steps: Steps
    beyond: Steps
    # Something on the way has been reported already.
    broken: bool


def locate(root: YamlNode, loc: Steps) -> Located:
    """Follows `loc` through the tree. Steps that the file lacks are names of union members, or a missing key."""
    node, steps, beyond, broken = root, (), (), root.broken
    for step in loc:
        child = _child(node, step)
        if child is None:
            beyond = (*beyond, step)
        else:
            node, steps, beyond = child, (*steps, step), ()
            broken = broken or node.broken
    return Located(node, steps, beyond, broken)


def any_broken(node: YamlNode) -> bool:
    return any(each.broken for each in walk(node))


def walk(node: YamlNode) -> Iterable[YamlNode]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node.value, list):
            waiting.extend(node.value)
        elif isinstance(node.value, dict):
            waiting.extend(node.value.values())


def of_type(root: YamlNode, model: type[BaseModel], wanted: type) -> Iterable[YamlNode]:
    """The values that the model reads as this type."""
    waiting: list[tuple[YamlNode, list[object]]] = [(root, [model])]
    while waiting:
        node, kinds = waiting.pop()
        if wanted in kinds:
            yield node
        children: Iterable[tuple[str | int, YamlNode]] = ()
        if isinstance(node.value, list):
            children = enumerate(node.value)
        elif isinstance(node.value, dict):
            children = node.value.items()
        for step, child in children:
            waiting.append((child, [below for kind in kinds for below in _below(kind, step)]))


def known_keys(model: type[BaseModel], loc: Steps) -> set[str]:
    """The keys a model takes in the mapping at `loc`."""
    candidates: list[object] = [model]
    for step in loc:
        below = [kind for candidate in candidates for kind in _below(candidate, step)]
        candidates = below or _members(candidates, step)
    return {key for candidate in candidates if _is_model(candidate) for key in _fields(candidate)}


def _child(node: YamlNode, step: str | int) -> YamlNode | None:
    match node.value, step:
        case list() as items, int() if step < len(items):
            return items[step]
        case dict() as entries, str():
            return entries.get(step)
        case _:
            return None


def _below(kind: object, step: str | int) -> list[object]:
    if _is_model(kind):
        annotation = _fields(kind).get(str(step))
        return [] if annotation is None else list(_alternatives(annotation))
    args = get_args(kind)
    match get_origin(kind), step:
        case origin, int() if origin in (list, tuple, set, frozenset) and args:
            return list(_alternatives(args[0]))
        case origin, str() if origin is dict:
            return list(_alternatives(args[1]))
        case _:
            return []


def _members(candidates: list[object], step: str | int) -> list[object]:
    """The step names one member of a union, by its tag or its class."""
    named: list[object] = [
        kind
        for kind in candidates
        if _is_model(kind)
        and (
            kind.__name__ == step
            or any(step in get_args(annotation) for annotation in _fields(kind).values())
        )
    ]
    return named or candidates


def _alternatives(annotation: object) -> Iterable[object]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from _alternatives(each)
    else:
        yield annotation


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _fields(model: type[BaseModel]) -> dict[str, object]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
