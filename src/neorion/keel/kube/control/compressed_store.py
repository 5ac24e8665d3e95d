"""Where a mirror of very many objects keeps them: packed, until somebody asks for one."""

import sys
import zlib
from collections.abc import Iterator, MutableMapping
from typing import Final, TypeVar

import msgspec

from neorion.keel.kube.objects import KubeObject, ObjectKey

T = TypeVar("T", bound=KubeObject)

# What was touched last is asked for again at once, and by several: a change wakes a controller, which looks at the object.
AT_HAND_MAX: Final = 64
# So many objects show what those of a kind have in common; more would not fit into the window below.
SAMPLED: Final = 8
# 8 KiB of sample, and a small state, which is copied for each object. Quick beats small: what is alike is found either way.
_WINDOW_BITS: Final = 13
_STATE: Final = 6
_QUICK: Final = 1

_pack = msgspec.msgpack.Encoder().encode


class DictionaryCompressor:
    """Makes bytes that are much like its sample very short: mostly it says where in the sample they stand."""

    def __init__(self, sample: bytes = b"") -> None:
        self._sample = sample[-(1 << _WINDOW_BITS) :]
        self._primed = zlib.compressobj(
            _QUICK, zlib.DEFLATED, -_WINDOW_BITS, _STATE, zlib.Z_DEFAULT_STRATEGY, self._sample
        )

    def press(self, data: bytes) -> bytes:
        one = self._primed.copy()
        return one.compress(data) + one.flush()

    def release(self, pressed: bytes) -> bytes:
        return zlib.decompressobj(-_WINDOW_BITS, self._sample).decompress(pressed)


class CompressedStore(MutableMapping[ObjectKey, T]):
    """Objects as bytes, each unpacked when it is asked for: a seventh of the memory, for some ten microseconds.

    Thousands of objects of one kind are much alike. The first few are the sample, and of all others only that is kept in
    which they differ from it.
    """

    def __init__(self, type_: type[T]) -> None:
        self._press = DictionaryCompressor()
        self._pressed: dict[ObjectKey, bytes] = {}
        self._at_hand: dict[ObjectKey, T] = {}
        self._unpack = msgspec.msgpack.Decoder(type_).decode

    def __len__(self) -> int:
        return len(self._pressed)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._pressed)

    def __contains__(self, key: object) -> bool:
        return key in self._pressed

    def __getitem__(self, key: ObjectKey) -> T:
        thing = self._at_hand.get(key)
        if thing is None:
            thing = self._unpack(self._press.release(self._pressed[key]))
            self._keep_at_hand(key, thing)
        return thing

    def __setitem__(self, key: ObjectKey, thing: T) -> None:
        pressed = self._press.press(_pack(thing))
        if key in self._pressed:
            self._pressed[key] = pressed
        else:
            # Thousands of objects have one namespace, and a server's objects have its name: each is kept once.
            self._pressed[ObjectKey(sys.intern(key.namespace), sys.intern(key.name))] = pressed
            if len(self._pressed) == SAMPLED:
                self._sample()
        self._keep_at_hand(key, thing)

    def __delitem__(self, key: ObjectKey) -> None:
        del self._pressed[key]
        self._at_hand.pop(key, None)

    def _sample(self) -> None:
        packed = {key: self._press.release(pressed) for key, pressed in self._pressed.items()}
        self._press = DictionaryCompressor(b"".join(packed.values()))
        for key, data in packed.items():
            self._pressed[key] = self._press.press(data)

    def _keep_at_hand(self, key: ObjectKey, thing: T) -> None:
        self._at_hand[key] = thing
        if len(self._at_hand) > AT_HAND_MAX:
            del self._at_hand[next(iter(self._at_hand))]
