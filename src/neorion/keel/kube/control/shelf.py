"""Where a mirror of very many objects keeps them: packed, until somebody asks for one."""

import sys
from collections.abc import Iterator, MutableMapping
from typing import Final, TypeVar

import msgspec

from neorion.keel.kube.objects import Key, Object

T = TypeVar("T", bound=Object)

# What was touched last is asked for again at once, and by several: a change wakes a controller, which looks at the object.
AT_HAND_MAX: Final = 64

_pack = msgspec.msgpack.Encoder().encode


class Packed(MutableMapping[Key, T]):
    """Objects as bytes, each unpacked when it is asked for: a third of the memory, for some microseconds."""

    def __init__(self, type_: type[T]) -> None:
        self._packed: dict[Key, bytes] = {}
        self._at_hand: dict[Key, T] = {}
        self._unpack = msgspec.msgpack.Decoder(type_).decode

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._packed)

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def __getitem__(self, key: Key) -> T:
        thing = self._at_hand.get(key)
        if thing is None:
            thing = self._unpack(self._packed[key])
            self._keep_at_hand(key, thing)
        return thing

    def __setitem__(self, key: Key, thing: T) -> None:
        # Thousands of objects have one namespace: its name is kept once.
        self._packed[Key(sys.intern(key.namespace), key.name)] = _pack(thing)
        self._keep_at_hand(key, thing)

    def __delitem__(self, key: Key) -> None:
        del self._packed[key]
        self._at_hand.pop(key, None)

    def _keep_at_hand(self, key: Key, thing: T) -> None:
        self._at_hand[key] = thing
        if len(self._at_hand) > AT_HAND_MAX:
            del self._at_hand[next(iter(self._at_hand))]
