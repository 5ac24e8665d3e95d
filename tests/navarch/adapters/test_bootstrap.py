"""Setup commands on a machine with a real OpenSSH server, from the purchase to the last command."""

import getpass
import os
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.text import TextReceiveStream
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.capacity.fake import FakeProvider
from neorion.capacity.provider import Machine, MachineId
from neorion.keel.base import Denied, Invalid, Retry
from neorion.keel.store import MemoryDisk
from neorion.navarch.adapters.bootstrap import SshBootstrapper
from neorion.navarch.adapters.bootstrap.host_key import private_key, public_key, startup_script
from neorion.navarch.model import NodeState, PoolSpec
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.setup_template import filled
from neorion.navarch.model.spec import Bootstrap
from neorion.navarch.ports import SshTarget
from neorion.navarch.testing import spec
from tests.navarch.plane import Running, running
from tools import system

pytestmark = [pytest.mark.anyio, pytest.mark.needs("sshd"), pytest.mark.timeout(180)]


class Loopback(FakeProvider):
    """Sells machines that all answer on this one."""

    async def describe(self, machine: MachineId) -> Machine:
        return replace(await super().describe(machine), private_address="", address="127.0.0.1")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which everything of one machine lies, and the port of its server."""

    folder: Path
    port: int

    @classmethod
    def at(cls, folder: Path) -> "Place":
        if os.geteuid() == 0:
            # What the package's own service makes before it starts the server.
            Path("/run/sshd").mkdir(exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "client")]
        subprocess.run(keygen, check=True)
        return cls(folder, port)

    def pool(self, *commands: str, **changes: Any) -> PoolSpec:
        way = Bootstrap(commands, getpass.getuser(), str(self.folder / "client"), self.port, **changes)
        return spec(1, bootstrap=way)

    def boot(self, script: str) -> None:
        """What a machine does with the script it was bought with."""
        bin_folder = self.folder / "bin"
        bin_folder.mkdir(exist_ok=True)
        (bin_folder / "systemctl").write_text("#!/bin/sh\n")
        (bin_folder / "systemctl").chmod(0o755)
        subprocess.run(
            ["sh", "-c", script.replace("/etc/ssh", str(self.folder))],
            check=True,
            env={"PATH": f"{bin_folder}:{os.environ['PATH']}"},
        )

    @asynccontextmanager
    async def sshd(self) -> AsyncGenerator[None]:
        """The server, from when it listens."""
        config = [
            f"ListenAddress 127.0.0.1:{self.port}",
            f"HostKey {self.folder / 'ssh_host_ed25519_key'}",
            f"AuthorizedKeysFile {self.folder / 'client.pub'}",
            "PidFile none",
            "UsePAM no",
            "StrictModes no",
            "PasswordAuthentication no",
        ]
        (self.folder / "sshd_config").write_text("\n".join(config) + "\n")
        program = [system.find("sshd") or "", "-D", "-e", "-f", str(self.folder / "sshd_config")]
        async with await anyio.open_process(program, stdout=subprocess.DEVNULL) as process:
            assert process.stderr is not None
            said = ""
            try:
                async for chunk in TextReceiveStream(process.stderr):
                    said += chunk
                    if "Server listening" in said:
                        break
                else:
                    raise AssertionError(said)
                yield
            finally:
                process.kill()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.at(tmp_path)


@asynccontextmanager
async def machine(it: Running, place: Place) -> AsyncGenerator[None]:
    """The machine that was bought has booted."""

    async def so() -> bool:
        return bool(it.cloud.machines)

    await it.until(so)
    (bought,) = it.cloud.machines.values()
    place.boot(bought.intent.startup)
    async with place.sshd():
        yield


async def story(it: Running, event: str) -> list[pb.Line]:
    (node,) = it.nodes()
    lines = (await it.operator.history(pb.HistoryRequest(subject=node.id))).lines
    return [line for line in lines if line.event == event]


async def set_up(it: Running, count: int) -> None:
    """Until so many commands are behind the machine."""

    async def so() -> bool:
        return any(node.set_up >= count for node in it.nodes())

    await it.until(so)


async def told(it: Running, event: str, words: str = "", count: int = 1) -> list[pb.Line]:
    """So many lines of the machine's story, once there are so many."""

    async def so() -> bool:
        return len([line for line in await story(it, event) if words in line.sentence]) >= count

    await it.until(so)
    return await story(it, event)


async def test_a_machine_is_set_up_by_commands_that_know_who_it_is(place: Place):
    log = place.folder / "log"
    pool = place.pool(
        f"echo {{{{.NodeID}}}} {{{{ .ControlPlane }}}} {{{{.Pool}}}} {{{{.Region}}}} > {log}",
        f"echo second >> {log}; echo {{{{.Token}}}} said; echo and this >&2",
    )
    async with running(pool, seller=Loopback, bootstrapper=SshBootstrapper(place.folder)) as it:
        async with machine(it, place):
            await set_up(it, 2)
        (node,) = it.nodes()
        assert node.state is NodeState.BOOTING
        assert log.read_text() == f"{node.id} http://navarch.test:50051 training us-west-2\nsecond\n"
        first, second = await story(it, "setup.command")
        assert first.sentence == "setup command 1 of 2 ended with 0"
        # Its token is not for those who read stories.
        assert second.data["output"] == "… said\nand this\n"
        assert second.data["command"].endswith("echo {{.Token}} said; echo and this >&2")


async def test_the_token_of_a_command_lets_that_one_machine_join(place: Place):
    pool = place.pool(f"echo {{{{.Token}}}} > {place.folder / 'token'}")
    async with running(pool, seller=Loopback, bootstrapper=SshBootstrapper(place.folder)) as it:
        async with machine(it, place):
            await set_up(it, 1)
        (node,) = it.nodes()
        token = (place.folder / "token").read_text().strip()
        await it.agent(token).register(pb.RegisterRequest(node_id=node.id))
        with pytest.raises(Denied):
            await it.agent(token).register(pb.RegisterRequest(node_id="another", pool="training"))


async def test_a_command_that_fails_is_told_with_its_output_and_tried_again_from_there(place: Place):
    log = place.folder / "log"
    pool = place.pool(
        f"echo one >> {log}",
        f"test -e {place.folder}/there || {{ touch {place.folder}/there; echo not yet; exit 3; }}",
        f"echo three >> {log}",
    )
    disk = MemoryDisk()
    async with running(pool, seller=Loopback, bootstrapper=SshBootstrapper(place.folder), disk=disk) as it:
        async with machine(it, place):
            _, failed, *_ = await told(it, "setup.command", count=2)
        assert failed.sentence == "setup command 2 of 3 ended with 3"
        assert failed.data["output"] == "not yet\n"
        cloud = it.cloud
    # Another control plane goes on where this one was.
    async with running(
        pool, seller=Loopback, bootstrapper=SshBootstrapper(place.folder), disk=disk, cloud=cloud
    ) as it:
        async with place.sshd():
            await set_up(it, 3)
        assert log.read_text() == "one\nthree\n"


async def test_a_machine_that_shows_another_key_is_not_entered(place: Place):
    pool = place.pool(f"touch {place.folder}/entered")
    async with running(pool, seller=Loopback, bootstrapper=SshBootstrapper(place.folder)) as it:
        await it.plane.fleet.tick()
        place.boot(startup_script(b"somebody else"))
        async with place.sshd():
            await told(it, "setup.waits", "shows another host key than it was given")
        assert not (place.folder / "entered").exists()


async def test_a_key_that_is_believed_at_first_is_written_down(place: Place):
    pool = place.pool("true", first_contact=True)
    place.boot(startup_script(b"its own"))
    async with place.sshd(), running(pool, seller=Loopback, bootstrapper=SshBootstrapper(place.folder)) as it:
        await set_up(it, 1)
        (pinned,) = await story(it, "setup.pinned")
        assert public_key(b"its own") in pinned.sentence
        assert it.nodes()[0].host_key == public_key(b"its own")


async def test_after_the_first_contact_no_other_key_is_believed(place: Place):
    bootstrapper, way = SshBootstrapper(place.folder), place.pool().bootstrap
    door = SshTarget(("127.0.0.1",), place.port, way.user, way.key_path, b"", first_contact=True)
    place.boot(startup_script(b"its own"))
    async with place.sshd(), bootstrapper.enter(door) as shell:
        known = replace(door, host_key=shell.host_key)
    async with place.sshd(), bootstrapper.enter(known):
        pass
    place.boot(startup_script(b"somebody else"))
    async with place.sshd():
        with pytest.raises(Retry) as refused:
            async with bootstrapper.enter(known):
                pass
        assert refused.value.code == "bootstrap.host_key"


async def test_a_command_that_hangs_is_ended_and_told(place: Place):
    pool = place.pool("echo begun; exec sleep 300")
    bootstrapper = SshBootstrapper(place.folder, command_s=15.0)
    async with running(pool, seller=Loopback, bootstrapper=bootstrapper) as it, machine(it, place):
        line = (await told(it, "setup.command"))[0]
        assert line.sentence == "setup command 1 of 1 failed: it did not end within 15 s"
        assert line.data["output"] == "begun\n"


def test_the_same_purchase_has_the_same_key_and_openssh_reads_it(tmp_path: Path):
    assert private_key(b"one") == private_key(b"one") != private_key(b"two")
    (tmp_path / "key").write_text(private_key(b"one") + "\n")
    (tmp_path / "key").chmod(0o600)
    done = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(tmp_path / "key")], check=True, capture_output=True, text=True
    )
    assert done.stdout.split()[:2] == public_key(b"one").split()


@settings(max_examples=30, deadline=None)
@given(value=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
def test_a_value_is_one_word_to_the_shell_whatever_it_holds(value: str):
    command = filled("printf '%s|' {{.Pool}} end", {"Pool": value})
    done = subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert done.stdout == f"{value}|end|".encode()


def test_keys_that_cannot_be_used_are_refused_before_anything_is_bought(tmp_path: Path):
    bootstrapper = SshBootstrapper(tmp_path)
    with pytest.raises(Denied):
        bootstrapper.check_key("none")
    (tmp_path / "bad").write_text("no key")
    with pytest.raises(Invalid):
        bootstrapper.check_key("bad")
