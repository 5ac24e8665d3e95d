"""XIDs in the kernel's log: the driver writes every one there, also where NVML does not tell of it."""

import errno
import os
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from msgspec import DecodeError, Struct, json

from neorion.keel.base import Terminal
from neorion.keel.clock import Clock

# The kernel refuses to hand a record to a smaller buffer than it needs; it writes none larger.
RECORD_MAX: Final = 16_384
# At the first start. Older records were handled, or will be repeated.
BACKLOG_S: Final = 600.0

_RECORD: Final = re.compile(r"\d+,(\d+),(\d+),[^;]*;(.*)")
_XID: Final = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:]+)[0-9a-fA-F.]*\): (\d{1,4}),? ?(.*)")
_SXID: Final = re.compile(r"SXid \(PCI:[0-9a-fA-F:.]+\): (\d{1,6}), (Fatal|Non-fatal),? ?(.*)")


@dataclass(frozen=True, slots=True)
class XidRecord:
    """One record that matters. `switch` marks a fatal error of an NVSwitch, whose codes are not XIDs."""

    sequence: int
    seconds: float
    code: int
    bus: str = ""
    message: str = ""
    switch: bool = False


class Cursor(Struct, frozen=True):
    """Position up to which the log of one boot was reported."""

    boot: str
    sequence: int


def parse(text: str) -> Iterator[XidRecord]:
    """The records in `text` that matter. Whatever else a log may hold is passed over."""
    for line in text.splitlines():
        record = _RECORD.match(line)
        if record is None:
            continue
        sequence, seconds, message = int(record[1]), int(record[2]) / 1e6, record[3]
        if found := _XID.search(message):
            bus = found[1].lower().rstrip(":")
            yield XidRecord(sequence, seconds, int(found[2]), bus, found[3])
        elif (found := _SXID.search(message)) and found[2] == "Fatal":
            yield XidRecord(sequence, seconds, int(found[1]), message=found[3], switch=True)


class KernelLog:
    """Follows the log from where an earlier life of the agent stopped. `memory` is the file that remembers where that was."""

    def __init__(self, device: Path, boot: Path, memory: Path, clock: Clock) -> None:
        self._device = device
        self._boot = boot
        self._memory = memory
        self._clock = clock

    async def entries(self) -> AsyncGenerator[XidRecord]:
        """Each once, as it is written. Never ends by itself."""
        try:
            boot = self._boot.read_text().strip()
            log = os.open(self._device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Terminal(
                "probe.no_kernel_log",
                f"The kernel's log cannot be read: {error.strerror}.",
                hint="Run the agent as root; in a container, mount /dev.",
            ) from None
        told = self._remembered(boot)
        earliest = self._clock.monotonic() - BACKLOG_S if told is None else 0.0
        try:
            while True:
                for entry in parse(await _read(log)):
                    if entry.sequence <= (told or -1) or entry.seconds < earliest:
                        continue
                    yield entry
                    told = entry.sequence
                    self._remember(Cursor(boot, told))
        finally:
            os.close(log)

    def _remembered(self, boot: str) -> int | None:
        """Position in the log of this boot; None if no agent has read it yet."""
        try:
            found = json.decode(self._memory.read_bytes(), type=Cursor)
        except (OSError, DecodeError, UnicodeDecodeError):
            return None
        return found.sequence if found.boot == boot else None

    def _remember(self, cursor: Cursor) -> None:
        fresh = self._memory.with_suffix(".new")
        fresh.write_bytes(json.encode(cursor))
        fresh.replace(self._memory)


async def _read(log: int) -> str:
    while True:
        try:
            found = os.read(log, RECORD_MAX)
        except BlockingIOError:
            await anyio.wait_readable(log)
        except OSError as error:
            # Records were overwritten before they were read; the next read goes on with the oldest that is left.
            if error.errno != errno.EPIPE:
                raise
        else:
            if not found:
                # The kernel's log never ends. A file that ends would be read again for ever, and block the event loop.
                raise Terminal(
                    "probe.kernel_log_ended",
                    "What was named as the kernel's log has an end, so it is another file.",
                    hint="Name the device: --kernel-log /dev/kmsg.",
                )
            return found.decode("utf-8", "replace")
