"""Ownership of fields by managers: a small version of server-side apply.

A field is identified by its path. An element of a list with keys is identified by its key; any other list is one value.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final, cast

Json = dict[str, Any]
Step = str | tuple[str, ...]
Path = tuple[Step, ...]
Owners = dict[str, set[Path]]

# Lists whose elements are identified by a key, as in the schemas of the built-in kinds; () means the element itself.
LIST_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "finalizers": (),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
# Fields of the identity, which have no owner.
_IDENTITY: Final[frozenset[Path]] = frozenset(
    {
        ("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid"),
        ("metadata", "resourceVersion"), ("metadata", "generation"), ("metadata", "creationTimestamp"),
        ("metadata", "deletionTimestamp"), ("metadata", "deletionGracePeriodSeconds"),
    }
)  # fmt: skip
ABSENT: Final = object()


def owned_by_apply(
    owners: Owners, manager: str, live: Json, wanted: Json
) -> tuple[Json, list[tuple[str, Path]]]:
    """Returns the object with `wanted` applied, and the conflicting fields of other managers.

    Fields that the manager applied before and omits now are removed, unless another manager owns them too.
    """
    ordered = list(leaves(wanted))
    now = set(ordered)
    conflicts = [
        (other, path)
        for other, theirs in sorted(owners.items())
        if other != manager
        for path in sorted(theirs & now, key=str)
        if get(live, path) != get(wanted, path)
    ]
    result = deepcopy(live)
    # An element is removed before its fields, because without its key it could not be found.
    for path in sorted(owners.get(manager, set()) - now, key=len):
        if not any(path in theirs for other, theirs in owners.items() if other != manager):
            _remove(result, path)
    for path in ordered:
        _put(result, path, get(wanted, path))
    return result, conflicts


def take_over(owners: Owners, manager: str, fields: set[Path], *, applied: bool) -> None:
    """Assigns fields to the manager: an apply replaces its set of fields, an update adds to it."""
    owners[manager] = fields if applied else owners.get(manager, set()) | fields


def disown(owners: Owners, fields: set[Path], *, spare: str) -> None:
    """Removes the fields from all managers except `spare`, and drops managers without fields."""
    for other in [name for name in owners if name != spare]:
        owners[other] -= fields
        if not owners[other]:
            del owners[other]


def changed(before: Json, after: Json) -> tuple[set[Path], set[Path]]:
    """The fields that an update set to another value, and those it removed."""
    old, new = set(leaves(before)), set(leaves(after))
    return {path for path in new if get(before, path) != get(after, path)}, old - new


def leaves(value: Json, path: Path = ()) -> Iterator[Path]:
    for name, inner in value.items():
        here = (*path, name)
        if here in _IDENTITY:
            continue
        if fields := as_map(inner):
            yield from leaves(fields, here)
        elif name in LIST_KEYS and isinstance(inner, list):
            for element in as_list(inner):
                at = (*here, _key(name, element))
                yield at
                yield from leaves(as_map(element), at)
        else:
            yield here


def get(value: Any, path: Path) -> Any:
    for depth, step in enumerate(path):
        value = _descend(value, path, depth, step)
        if value is ABSENT:
            return ABSENT
    # A list element is present or absent; its content consists of other fields.
    return True if path and isinstance(path[-1], tuple) else value


def _put(value: Any, path: Path, leaf: Any) -> None:
    for depth, step in enumerate(path):
        if isinstance(step, tuple):
            value = _element_made(value, path[depth - 1], step)
        elif depth == len(path) - 1:
            value[step] = deepcopy(leaf)
        else:
            made: Any = [] if isinstance(path[depth + 1], tuple) else {}
            if not isinstance(value.get(step), type(made)):
                value[step] = made
            value = value[step]


def _remove(value: Json, path: Path) -> None:
    """Removes the field, and the parents that become empty."""
    *above, last = path
    holder: Any = value
    for depth, step in enumerate(above):
        holder = _descend(holder, path, depth, step)
        if holder is ABSENT:
            return
    if isinstance(last, str):
        holder.pop(last, None)
    elif (element := _element(holder, path[-2], last)) is not ABSENT:
        holder.remove(element)
    if not holder and above and isinstance(above[-1], str):
        _remove(value, tuple(above))


def _descend(value: Any, path: Path, depth: int, step: Step) -> Any:
    return (
        as_map(value).get(step, ABSENT) if isinstance(step, str) else _element(value, path[depth - 1], step)
    )


def _key(field: Step, element: Any) -> tuple[str, ...]:
    names = LIST_KEYS[str(field)]
    return tuple(str(element[name]) for name in names) if names else (str(element),)


def _element(elements: Any, field: Step, key: tuple[str, ...]) -> Any:
    return next((one for one in as_list(elements) if _key(field, one) == key), ABSENT)


def _element_made(elements: list[Any], field: Step, key: tuple[str, ...]) -> Any:
    found = _element(elements, field, key)
    if found is ABSENT:
        names = LIST_KEYS[str(field)]
        found = dict(zip(names, key, strict=True)) if names else key[0]
        elements.append(found)
    return found


def as_map(value: Any) -> Json:
    """The value if it is a JSON object, an empty one otherwise."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
