"""The program that looks for use inside a server, and how its words are read. Plain POSIX shell: any image runs it."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from neorion.devservers.decide.idle_detection import GPU_FLOOR, ActivitySource, ProbeReading

# Where sshd listens inside the pod: no image needs rights of root for it.
SSH_PORT = 2222
# Programs whose being there is use, by the names the kernel knows them by: launchers of training and kept terminals.
JOBS = ("torchrun", "deepspeed", "accelerate", "mpirun", "tmux: server", "screen", "rsync")
# What a probe says at most: some lines for each terminal, session and job.
PROBE_OUTPUT_MAX = 64 * 1024

_JOBS = "|".join(f'"{name}"' for name in JOBS)
# What is there and cannot be read is said to be unknown: silence would pass for a quiet server.
PROBE = f"""
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
echo "now $(date +%s)"
for tty in /dev/pts/[0-9]*; do
  [ -e "$tty" ] || continue
  stat -c 'terminal %X' "$tty" 2>/dev/null || echo "terminal unknown"
done
sessions() {{
  while read -r _ here _ state _; do
    [ "${{here##*:}}:$state" = {SSH_PORT:04X}:01 ] && echo "session open"
  done
}}
if [ -r /proc/net/tcp ]; then sessions </proc/net/tcp; else echo "session unknown"; fi
if [ -r /proc/net/tcp6 ]; then sessions </proc/net/tcp6; fi
if [ -r /sys/fs/cgroup/cpu.stat ]; then
  while read -r name value; do [ "$name" = usage_usec ] && echo "cpu $value"; done </sys/fs/cgroup/cpu.stat
elif [ -r /sys/fs/cgroup/cpuacct/cpuacct.usage ]; then
  read -r value </sys/fs/cgroup/cpuacct/cpuacct.usage && echo "cpu $((value / 1000))"
fi
if command -v nvidia-smi >/dev/null 2>&1; then
  used=$(timeout 5 nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits) || used=unknown
  for one in $used; do echo "gpu $one"; done
fi
for file in "${{JUPYTER_RUNTIME_DIR:-$HOME/.local/share/jupyter/runtime}}"/jpserver-*.json; do
  [ -r "$file" ] || continue
  url=$(sed -n 's/.*"url": *"\\([^"]*\\)".*/\\1/p' "$file")
  token=$(sed -n 's/.*"token": *"\\([^"]*\\)".*/\\1/p' "$file")
  asked="${{url}}api/kernels?token=$token"
  echo "kernels $(curl -fs -m 3 "$asked" || wget -qO- -T 3 "$asked")"
done
for comm in /proc/[0-9]*/comm; do
  read -r name <"$comm" || continue
  case $name in {_JOBS}) echo "job $name" ;; esac
done
echo end
"""

_TIME = re.compile(r"[0-9]{1,12}")
_MICROSECONDS = re.compile(r"[0-9]{1,18}")
_PERCENT = re.compile(r"[0-9]{1,3}")


class _Kernel(msgspec.Struct):
    execution_state: str = ""
    last_activity: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


def read(words: str) -> ProbeReading | None:
    """None where the probe did not come to its end: then nothing is known."""
    lines = [(what, value) for what, _, value in (line.partition(" ") for line in words.splitlines())]
    said = dict(lines)
    if not lines or lines[-1][0] != "end" or not _TIME.fullmatch(said.get("now", "")):
        return None
    now = int(said["now"])
    found = [sign for what, value in lines for sign in _signs(what, value, now)]
    cpu = said.get("cpu", "")
    return ProbeReading(
        ages=tuple((source, age) for source, age in found if age is not None),
        cpu=timedelta(microseconds=int(cpu)) if _MICROSECONDS.fullmatch(cpu) else None,
        unknown=frozenset(source for source, age in found if age is None),
    )


def _signs(what: str, value: str, now: int) -> Iterator[tuple[ActivitySource, timedelta | None]]:
    """Parses one line: a source, and the time since it was active; None if that is unknown."""
    match what:
        case "terminal":
            known = _TIME.fullmatch(value)
            yield ActivitySource.TERMINAL, timedelta(seconds=now - int(value)) if known else None
        case "session":
            yield ActivitySource.SESSION, timedelta(0) if value == "open" else None
        case "gpu" if not _PERCENT.fullmatch(value):
            yield ActivitySource.GPU, None
        case "gpu" if int(value) >= GPU_FLOOR:
            yield ActivitySource.GPU, timedelta(0)
        case "job":
            yield ActivitySource.PROCESS, timedelta(0)
        case "kernels":
            yield from _kernels(value, now)
        case _:
            return


def _kernels(value: str, now: int) -> Iterator[tuple[ActivitySource, timedelta]]:
    """A server that does not answer is one that was left behind in a file."""
    try:
        kernels = msgspec.json.decode(value, type=list[_Kernel])
    except msgspec.MsgspecError:
        return
    for kernel in kernels:
        if kernel.execution_state == "busy":
            yield ActivitySource.NOTEBOOK, timedelta(0)
        elif kernel.last_activity is not None:
            yield ActivitySource.NOTEBOOK, timedelta(seconds=now - kernel.last_activity.timestamp())
