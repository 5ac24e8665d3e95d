"""What a task of a map runs. It stands here, and not with the client, because tasks have this loaded already."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Final

# As much of an item as tells it from others.
_SHOWN_CHARS: Final = 200


class Args:
    """An item of a map that is several arguments: `client.map(fn, [Args(1, 2, key=3), Args(4, 5)])`."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        told = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"Args({', '.join(told)})"


class MapTask:
    """The function over the items of one chunk. `start` is the number of the first."""

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
                # It ended well, and said nothing: as a function that is not mapped.
                return None
            error.add_note(f"In item {number} of the map: {_shown(item)}")
            if not self._keep_errors:
                raise
            return _portable(error)


def _shown(item: object) -> str:
    try:
        return repr(item)[:_SHOWN_CHARS]
    except Exception:  # noqa: BLE001 -- the user's own repr, and its failure must not hide the other
        return f"a {type(item).__qualname__}"


def _portable(error: BaseException) -> BaseException:
    """The error itself if it comes back from a pickle, otherwise one that says what it was."""
    from neorion.iris.model.pickling import dumps  # noqa: PLC0415 -- clients import this module before they pickle anything

    try:
        back = pickle.loads(dumps(error))  # noqa: S301 -- made in the same line
    except Exception:  # noqa: BLE001 -- whatever `__reduce__` raises
        back = None
    if isinstance(back, type(error)):
        return error
    stand_in = RuntimeError(f"{type(error).__qualname__}: {error}")
    for note in error.__notes__:
        stand_in.add_note(note)
    return stand_in
