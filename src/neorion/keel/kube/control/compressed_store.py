"""A compressed store for the objects of a large informer; an object is decompressed when it is read."""

import sys
import zlib
from collections.abc import Iterator, MutableMapping
from typing import Final, TypeVar

import msgspec

from neorion.keel.kube.objects import KubeObject, ObjectKey

T = TypeVar("T", bound=KubeObject)

# Recently used objects stay decompressed, because a change wakes a controller that reads the object several times.
RECENT_MAX: Final = 64
# A sample of this many objects shows what those of a kind have in common; more would exceed the window below.
SAMPLED: Final = 8
# An 8 KiB sample and a small state, which is copied for each object. Fast settings, because better ones save little
# more.
_WINDOW_BITS: Final = 13
_STATE: Final = 6
_QUICK: Final = 1

_pack = msgspec.msgpack.Encoder().encode


class DictionaryCompressor:
    """Compresses bytes by their similarity to a sample: mostly as references into it."""

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
    """A mapping of objects that are stored compressed: a seventh of the memory, for some ten microseconds per read.

    Thousands of objects of one kind are similar. The first few become the sample, and all others are stored as their
    difference from it.
    """

    def __init__(self, type_: type[T]) -> None:
        self._press = DictionaryCompressor()
        self._pressed: dict[ObjectKey, bytes] = {}
        self._recent: dict[ObjectKey, T] = {}
        self._unpack = msgspec.msgpack.Decoder(type_).decode

    def __len__(self) -> int:
        return len(self._pressed)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._pressed)

    def __contains__(self, key: object) -> bool:
        return key in self._pressed

    def __getitem__(self, key: ObjectKey) -> T:
        thing = self._recent.get(key)
        if thing is None:
            thing = self._unpack(self._press.release(self._pressed[key]))
            self._keep_recent(key, thing)
        return thing

    def __setitem__(self, key: ObjectKey, thing: T) -> None:
        pressed = self._press.press(_pack(thing))
        if key in self._pressed:
            self._pressed[key] = pressed
        else:
            # Namespaces and names repeat in thousands of keys, so each text is stored once.
            self._pressed[ObjectKey(sys.intern(key.namespace), sys.intern(key.name))] = pressed
            if len(self._pressed) == SAMPLED:
                self._sample()
        self._keep_recent(key, thing)

    def __delitem__(self, key: ObjectKey) -> None:
        del self._pressed[key]
        self._recent.pop(key, None)

    def _sample(self) -> None:
        packed = {key: self._press.release(pressed) for key, pressed in self._pressed.items()}
        self._press = DictionaryCompressor(b"".join(packed.values()))
        for key, data in packed.items():
            self._pressed[key] = self._press.press(data)

    def _keep_recent(self, key: ObjectKey, thing: T) -> None:
        self._recent[key] = thing
        if len(self._recent) > RECENT_MAX:
            del self._recent[next(iter(self._recent))]
