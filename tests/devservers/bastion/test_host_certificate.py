"""The bastion's host key: clients know it by the authority that signed it, with the stock client on loopback."""

import subprocess
from pathlib import Path

import asyncssh
import pytest

from neorion.devservers.cli.ssh_hosts import known_hosts
from neorion.devservers.model import DevServerSpec, DevServerStatus
from neorion.devservers.testing import a_server
from tests.devservers.bastion.loopback import Loopback, loopback

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh")]


async def strict(
    bastion: Loopback, *lines: str, alias: str = "devservers-bastion"
) -> "subprocess.CompletedProcess[bytes]":
    """A login of a client that knows these hosts, and asks nothing."""
    known = bastion.folder / "strict"
    known.write_text("".join(f"{line}\n" for line in lines))
    options = ["StrictHostKeyChecking=yes", f"UserKnownHostsFile={known}", "GlobalKnownHostsFile=none"]
    options += [f"HostKeyAlias={alias}"] if alias else []
    command = bastion.command("ann+mydev", "true")
    return await bastion.run([command[0], *(word for one in options for word in ("-o", one)), *command[1:]])


async def test_a_client_that_trusts_the_authority_is_not_asked_about_the_host_key(tmp_path: Path):
    async with loopback(tmp_path) as bastion:
        done = await strict(bastion, f"@cert-authority devservers-bastion {bastion.authority}")
        assert (done.returncode, done.stderr) == (0, b"")
        name = f"@cert-authority [127.0.0.1]:{bastion.port} {bastion.authority}"
        assert (await strict(bastion, name, alias="")).returncode == 0
        other = await strict(
            bastion, f"@cert-authority bastion.example.com {bastion.authority}", alias="bastion.example.com"
        )
        assert b"name is not a listed principal" in other.stderr


async def test_a_client_that_knows_the_host_key_itself_is_not_asked_either(tmp_path: Path):
    async with loopback(tmp_path) as bastion:
        key = await asyncssh.get_server_host_key(
            "127.0.0.1", bastion.port, server_host_key_algs=["ssh-ed25519"], config=None
        )
        assert key is not None
        line = f"devservers-bastion {key.export_public_key().decode().strip()}"
        assert (await strict(bastion, line)).returncode == 0


async def test_a_client_that_trusts_another_authority_does_not_log_in(tmp_path: Path):
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    async with loopback(tmp_path) as bastion:
        for lines in (
            [],
            [f"@cert-authority devservers-bastion {other}"],
            [f"@cert-authority x {bastion.authority}"],
        ):
            done = await strict(bastion, *lines)
            assert done.returncode == 255
            assert b"Host key verification failed." in done.stderr


async def test_devctl_prints_the_authority_and_the_host_keys(tmp_path: Path):
    server = a_server(DevServerSpec(flavor="x"), DevServerStatus(ssh_host_key="ssh-ed25519 BBBB"))
    async with loopback(tmp_path) as bastion:
        public = {"authority.pub": f"{bastion.authority}\n", "host_key.pub": "ssh-ed25519 AAAA\n"}
        lines = known_hosts(public, "dev-ann", [server]).splitlines()
        assert lines == [
            f"@cert-authority devservers-bastion {bastion.authority}",
            "devservers-bastion ssh-ed25519 AAAA",
            f"{server.meta.name}.dev-ann ssh-ed25519 BBBB",
        ]
        assert (await strict(bastion, *lines)).returncode == 0
    # A bastion from before there was an authority.
    assert known_hosts({"host_key.pub": "ssh-ed25519 AAAA"}, "dev-ann", []).startswith("devservers-bastion ")
