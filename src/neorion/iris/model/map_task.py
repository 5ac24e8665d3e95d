"""Function of a map's tasks. It is in this package because tasks have it loaded already."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Final

# Enough of an item to identify it.
_SHOWN_CHARS: Final = 200


class Args:
    """Item of a map with several arguments: `client.map(fn, [Args(1, 2, key=3), Args(4, 5)])`."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        parts = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"Args({', '.join(parts)})"


class MapTask:
    """Call of a function on the items of one chunk. `start` is the number of the first item."""

    def __init__(self, function: Callable[..., Any], *, keep_errors: bool) -> None:
        self._function = function
        self._keep_errors = keep_errors

    def __call__(self, start: int, items: Sequence[Any]) -> list[Any]:
        return [self._one(start + offset, item) for offset, item in enumerate(items)]

    def _one(self, number: int, item: object) -> object:
        try:
            if isinstance(item, Args):
                return self._function(*item.args, **item.kwargs)
            return self._function(item)
        except (Exception, SystemExit) as error:
            if isinstance(error, SystemExit) and not error.code:
                # `sys.exit(0)` succeeds without a value, as in a function that is not mapped.
                return None
            error.add_note(f"In item {number} of the map: {_shown(item)}")
            if not self._keep_errors:
                raise
            return _portable(error)


def _shown(item: object) -> str:
    try:
        return repr(item)[:_SHOWN_CHARS]
    except Exception:  # noqa: BLE001 -- the user's repr may fail, which must not hide the task's error
        return f"a {type(item).__qualname__}"


def _portable(error: BaseException) -> BaseException:
    """The error itself if it can be unpickled, otherwise a RuntimeError that describes it."""
    from neorion.iris.model.pickling import dumps  # noqa: PLC0415 -- clients import this module before they pickle anything

    try:
        restored = pickle.loads(dumps(error))  # noqa: S301 -- made in the same line
    except Exception:  # noqa: BLE001 -- whatever `__reduce__` raises
        restored = None
    if isinstance(restored, type(error)):
        return error
    replacement = RuntimeError(f"{type(error).__qualname__}: {error}")
    for note in error.__notes__:
        replacement.add_note(note)
    return replacement
