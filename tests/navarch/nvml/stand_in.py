"""A machine as its driver's library, its kernel's log and its fabric show it, told what to be like by a test."""

import os
import subprocess
from pathlib import Path

from neorion.keel.clock import SystemClock

SOURCE = Path(__file__).parent / "stand_in.c"


def build(folder: Path) -> Path:
    """The library, under the name by which the binding looks for it."""
    built = folder / "libnvidia-ml.so.1"
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run(
        [*command, "-Wl,-soname,libnvidia-ml.so.1", "-o", str(built), str(SOURCE)],
        check=True,
    )
    return built


class Machine:
    """What the stand-in is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "boot_id").write_text("one\n")
        (folder / "state").touch()
        os.mkfifo(folder / "events")
        os.mkfifo(folder / "kmsg")
        # Held open: a log never ends, and what is written before anybody reads is not lost.
        self._kernel = os.open(folder / "kmsg", os.O_RDWR)
        self._events = os.open(folder / "events", os.O_RDWR)

    def say(self, *facts: str) -> None:
        fresh = self.folder / "state.new"
        fresh.write_text("".join(f"{fact}\n" for fact in facts))
        fresh.replace(self.folder / "state")

    def xid(self, gpu: int, code: int) -> None:
        os.write(self._events, f"{gpu} {code}\n".encode())

    def write(self, sequence: int, text: str) -> None:
        now = round(SystemClock().monotonic() * 1e6)
        os.write(self._kernel, f"4,{sequence},{now},-;{text}\n".encode())

    def close(self) -> None:
        os.close(self._kernel)
        os.close(self._events)
