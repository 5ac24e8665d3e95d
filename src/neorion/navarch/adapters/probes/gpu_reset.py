"""Treatments on an agent's machine: reset a GPU, or reboot. They use the machine's own programs, or are refused."""

import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

import anyio

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Denied, Terminal

# A reset takes seconds; a program that needs longer than this hangs with its GPU.
PATIENCE_S: Final = 120.0
SAID_MAX: Final = 500


async def reset_gpu(gpu: int) -> None:
    await _run(["nvidia-smi", "--gpu-reset", *(["-i", str(gpu)] if gpu >= 0 else [])])


async def reboot() -> None:
    await _run(["systemctl", "reboot"])


def check_allowed(remedy: Remedy, allowed: frozenset[Remedy]) -> None:
    if remedy not in allowed:
        raise Denied(
            "agent.not_allowed",
            f"This agent may not carry out {remedy.value}.",
            hint=f"Start it with --allow {remedy.value}.",
        )


async def _run(command: Sequence[str]) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise Terminal(
            "agent.no_program",
            f"There is no {command[0]} on this machine.",
            hint="Install it, or run the agent outside of a container.",
        )
    try:
        with anyio.fail_after(PATIENCE_S):
            done = await anyio.run_process(
                [program, *command[1:]], check=False, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
    except TimeoutError:
        raise Terminal(
            "agent.treatment_hangs",
            f"{command[0]} did not end within {PATIENCE_S:g} s.",
            hint="Reboot the machine.",
        ) from None
    if done.returncode:
        said = " ".join(done.stdout.decode("utf-8", "replace").split())[:SAID_MAX]
        raise Terminal(
            "agent.treatment_failed",
            f"{command[0]} ended with {done.returncode}: {said}",
            hint="Read the log of the command on the machine.",
        )
