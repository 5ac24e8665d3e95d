"""System calls that Python does not offer, from the C library of the interpreter.

`ctypes.util.find_library` is not used: it runs compilers and linkers to find what is already loaded.
"""

import ctypes
import os
import signal
import struct
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from itertools import accumulate
from types import TracebackType

_LIBC = ctypes.CDLL(None, use_errno=True)
_SIGKILL = int(signal.SIGKILL)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_FALLOC_FL_KEEP_SIZE_PUNCH_HOLE = 1 | 2
_IN_MODIFY = 0x2
_IN_ONESHOT = 0x80000000
_EVENT = struct.Struct("iIII")

_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
# These run in every forked process, where each touched page is copied: bound once, without declared types, without
# releasing the interpreter's lock and without `errno`.
_PLAIN = ctypes.PyDLL(None)
_prctl = _PLAIN.prctl
_signal = _PLAIN.signal
_environ = ctypes.c_void_p.in_dll(_PLAIN, "environ")
_clock_ns = time.clock_gettime_ns
_BOOTTIME = time.CLOCK_BOOTTIME


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def boottime_ns() -> int:
    """Time for leases and limits, which cannot be set and continues while the machine sleeps.

    It does not use `keel.clock`, which imports asyncio: a third more memory to copy at each fork.
    """
    return _clock_ns(_BOOTTIME)


def set_pdeathsig(parent: int) -> None:
    """Makes the kernel kill this process when its parent ends. Handles a parent that has already ended."""
    if _prctl(_PR_SET_PDEATHSIG, _SIGKILL) or os.getppid() != parent:
        os.kill(os.getpid(), _SIGKILL)


def set_child_subreaper() -> None:
    """Makes orphaned descendants children of this process, not of init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def reset_signal(number: int) -> None:
    """Restores the kernel's default. `signal.signal` would load several enumerations."""
    _signal(number, 0)


class EnvBlock:
    """Environment in the layout of the C library, made before a fork and activated by a single store after it.

    Setting a task's few variables one by one would copy fifty more pages. The C library does not free this memory,
    so the object must be kept while the process lives.
    """

    __slots__ = ("_block", "_pointers", "_values")

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._values = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
        lines = [b"%b=%b\0" % line for line in self._values.items()]
        self._block = ctypes.create_string_buffer(b"".join(lines))
        *starts, _ = accumulate(map(len, lines), initial=ctypes.addressof(self._block))
        self._pointers = (ctypes.c_void_p * (len(lines) + 1))(*starts, None)

    def put(self) -> None:
        """Replaces all variables of this process, for Python and for programs that it starts."""
        os.environ._data = os.environb._data = self._values  # noqa: SLF001  # pyright: ignore -- there is no public name
        _environ.value = ctypes.addressof(self._pointers)


def punch_hole(fd: int, length: int) -> None:
    """Frees the first bytes of a file. They read as zeros, and all others keep their offsets."""
    _checked(_LIBC.fallocate(fd, _FALLOC_FL_KEEP_SIZE_PUNCH_HOLE, 0, length))


class Modifications(AbstractContextManager["Modifications"]):
    """Watches for the next change of each file, once: a busy writer costs one event per watch."""

    def __init__(self) -> None:
        self.fd = _checked(_LIBC.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)

    def watch(self, path: str) -> int:
        return _checked(_LIBC.inotify_add_watch(self.fd, os.fsencode(path), _IN_MODIFY | _IN_ONESHOT))

    def unwatch(self, watch: int) -> None:
        """Removes a watch. A watch that has fired is already gone, which is not an error."""
        _LIBC.inotify_rm_watch(self.fd, watch)

    def read(self) -> list[int]:
        """Returns the watches that have fired."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return []
        watches = list[int]()
        at = 0
        while at < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, at)
            if mask & _IN_MODIFY:
                watches.append(watch)
            at += _EVENT.size + length
        return watches
