"""Patches on plain JSON: RFC 7386 merge patches, and the part of RFC 6902 that controllers use."""

from copy import deepcopy
from typing import Any, cast

from neorion.keel.base import Invalid
from neorion.keel.kube.testing.field_ownership import Json, as_map


def merged(target: Any, patch: Any) -> Any:
    """A merge patch: null takes a field away, lists are replaced whole."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    result = dict(as_map(target))
    for name, value in as_map(patch).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def patched(target: Json, operations: list[Json]) -> Json:
    """A JSON patch of add, replace, remove and test; refused whole if one of them does not fit."""
    result = deepcopy(target)
    for operation in operations:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        holder: Any = result
        try:
            for step in steps[:-1]:
                holder = holder[int(step) if isinstance(holder, list) else step]
            _operate(holder, steps[-1], operation)
        except (KeyError, IndexError, ValueError, TypeError):
            raise Invalid(
                "kube.patch", f"The patch does not fit: {operation['op']} {operation['path']}."
            ) from None
    return result


def _operate(holder: Any, step: str, operation: Json) -> None:
    elements = cast("list[Any]", holder)
    listed = isinstance(holder, list)
    at: Any = (len(elements) if step == "-" else int(step)) if listed else step
    match operation["op"]:
        case "add" if listed:
            elements.insert(at, operation["value"])
        case "add":
            holder[at] = operation["value"]
        case "replace":
            del holder[at]
            _operate(holder, step, {**operation, "op": "add"})
        case "remove":
            del holder[at]
        case "test" if holder[at] == operation["value"]:
            pass
        case other:
            raise ValueError(other)
