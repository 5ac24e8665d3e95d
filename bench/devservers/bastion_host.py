"""`python -m bench.devservers.bastion_host FOLDER [SSHD_PORT]`: the servers that the benchmark of the bastion measures.

A bastion on loopback whose consoles are programs of this machine, and beside it, in a process of its own, bare asyncssh.
"""

import subprocess
import sys
from pathlib import Path

import anyio
import asyncssh

from neorion.devservers.bastion import Limits
from neorion.devservers.decide import SSH_PORT
from neorion.keel.kube import ObjectKey
from tests.devservers.bastion.loopback import loopback

LIMITS = {"limits": {"connections": 1000, "channels": 1000}}


async def bastion(folder: Path, sshd: int) -> None:
    async with loopback(folder, Limits(waiting=1000, waiting_in_all=1000, burst=10_000), LIMITS) as made:
        made.servers.ports[ObjectKey("dev-ann", "mydev")][SSH_PORT] = sshd
        print(made.port, flush=True)
        await anyio.sleep_forever()


async def bare(folder: Path) -> None:
    """As little as a server by asyncssh can be: it starts the program and copies."""

    async def run(process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or "sh"
        inner = await anyio.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        await process.redirect(stdin=None, stdout=None)
        assert inner.stdin is not None
        await inner.stdin.aclose()
        process.exit(await inner.wait())

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],  # pyright: ignore[reportUnknownMemberType] -- its keywords are untyped
        authorized_client_keys=str(folder / "ann.pub"),
        process_factory=run,
        encoding=None,
        config=None,
    )
    print(server.get_port(), flush=True)
    await server.wait_closed()


def main(folder: Path, *sshd: str) -> None:
    asyncssh.set_log_level("ERROR")
    if sshd:
        anyio.run(bastion, folder, int(sshd[0]))
    else:
        anyio.run(bare, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
