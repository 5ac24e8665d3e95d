"""Pickles of functions and values, with cloudpickle and support for what functools wraps around a user's own.

Cloudpickle treats a cached function like one of an installed module, and fails on the lock of a cached property and the
cache of a generic function. Tasks have this module loaded already.
"""

import functools
import pickle
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, cast
from weakref import WeakKeyDictionary

import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none

_whole: Any = cloudpickle


def _cached(function: Callable[..., Any], how: dict[str, Any]) -> object:
    return functools.lru_cache(**how)(function)


def _cached_property(function: Callable[[Any], Any], name: str | None) -> object:
    made: Any = functools.cached_property(function)
    # A class sets this name when it is created; for an unpickled property it is set here.
    made.attrname = name
    return made


def _reduce_cached(found: Any) -> object:  # noqa: ANN401 -- its type has no public name
    # A function of an installed module is pickled by name; a user's own function has no module in a task.
    module: str = found.__module__
    own = module in _whole.list_registry_pickle_by_value() or module not in sys.modules
    if own or module == "__main__" or "<locals>" in found.__qualname__:
        return _cached, (found.__wrapped__, found.cache_parameters())
    return found.__reduce__()


def _reduce_property(found: Any) -> object:  # noqa: ANN401 -- any function's
    return _cached_property, (found.func, found.attrname)


def _reduce_weak(found: "WeakKeyDictionary[Any, Any]") -> object:
    return WeakKeyDictionary, (dict(found.items()),)


class _Pickler(_whole.Pickler):
    dispatch_table: ClassVar[Any] = _whole.Pickler.dispatch_table.new_child(
        {
            type(functools.cache(print)): _reduce_cached,
            functools.cached_property: _reduce_property,
            WeakKeyDictionary: _reduce_weak,
        }
    )


class Sink(Protocol):
    """Target of a pickle: a file, or a buffer."""

    def write(self, data: bytes, /) -> object: ...


class _Parts(list[bytes]):
    def write(self, data: bytes) -> None:
        self.append(data)


def dump(value: object, sink: Sink) -> None:
    cast("Any", _Pickler)(sink).dump(value)


class _ErrorInParts:
    """An error whose class cannot be called with its arguments, e.g. because its `__init__` passes on others."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> tuple[object, ...]:
        return error_of_parts, (type(self._error), self._error.args, self._error.__dict__)


def error_of_parts(
    kind: type[BaseException], args: tuple[object, ...], fields: dict[str, object]
) -> BaseException:
    """Rebuilds an error without its `__init__`."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


def error_dumps(error: BaseException) -> bytes:
    """Pickles an error so that it keeps its type. Raises if that is impossible."""
    try:
        data = dumps(error)
        if isinstance(pickle.loads(data), BaseException):  # noqa: S301 -- made one line above
            return data
        failure: Exception = TypeError("it is unpickled as another type")
    except Exception as raised:  # noqa: BLE001 -- whatever `__reduce__` raises
        failure = raised
    try:
        data = dumps(_ErrorInParts(error))
        pickle.loads(data)  # noqa: S301 -- made one line above
    except Exception:  # noqa: BLE001 -- the first failure says more
        raise failure from None
    return data


def dumps(value: object) -> bytes:
    parts = _Parts()
    dump(value, parts)
    return b"".join(parts)
