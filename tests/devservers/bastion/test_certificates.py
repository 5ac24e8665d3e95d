"""Logins by OpenSSH certificates of a company's authority, with the stock client."""

import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from neorion.devservers.model.audit import AuditEvent
from neorion.devservers.model.kube_types import USERS
from neorion.keel.kube import MergePatch
from tests.devservers.bastion.loopback import Loopback, loopback, make_key

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh")]


@pytest.fixture
async def bastion(tmp_path: Path) -> AsyncGenerator[Loopback]:
    """ca is the company's authority, and other is not. work is a key that no user has."""
    async with loopback(tmp_path) as made:
        for name in ("ca", "other", "work"):
            await make_key(tmp_path, name)
        yield made


def sign(bastion: Loopback, *options: str, authority: str = "ca") -> None:
    key = str(bastion.key("work"))
    subprocess.run(
        ["ssh-keygen", "-q", "-s", str(bastion.key(authority)), "-I", "ann", *options, f"{key}.pub"],
        check=True,
    )


async def code(bastion: Loopback, login: str) -> int:
    certificate = f"CertificateFile={bastion.key('work')}-cert.pub"
    command = bastion.command(login, "true", key="work")
    return (await bastion.run([*command[:1], "-o", certificate, *command[1:]])).returncode


async def test_a_certificate_that_names_the_user_logs_in_to_the_console_and_to_servers(bastion: Loopback):
    assert await code(bastion, "ann") == 255
    sign(bastion, "-n", "ann", "-V", "+1h")
    assert await code(bastion, "ann") == 0
    assert await code(bastion, "ann+mydev") == 0
    logins = [one.key for one in bastion.records if one.event is AuditEvent.LOGIN]
    assert logins == ["certificate", "certificate"]


@pytest.mark.parametrize(
    ("options", "authority"),
    [
        (("-n", "bob", "-V", "+1h"), "ca"),
        (("-V", "+1h"), "ca"),
        (("-n", "ann", "-V", "-2h:-1h"), "ca"),
        (("-n", "ann", "-V", "+1h:+2h"), "ca"),
        (("-n", "ann", "-V", "+1h", "-O", "source-address=192.0.2.0/24"), "ca"),
        (("-n", "ann", "-V", "+1h"), "other"),
        (("-h", "-n", "ann", "-V", "+1h"), "ca"),
        (("-n", "ann", "-V", "+1h", "-O", "critical:unknown@example.com=1"), "ca"),
    ],
)
async def test_any_other_certificate_is_refused(bastion: Loopback, options: tuple[str, ...], authority: str):
    sign(bastion, *options, authority=authority)
    assert await code(bastion, "ann") == 255


async def test_a_certificate_of_a_suspended_user_is_refused(bastion: Loopback):
    sign(bastion, "-n", "ann", "-V", "+1h")
    await bastion.api.patch(USERS, "ann", MergePatch({"spec": {"suspended": True}}))
    assert await code(bastion, "ann") == 255


async def test_an_authority_is_trusted_no_longer_once_it_is_gone_from_the_file(bastion: Loopback):
    sign(bastion, "-n", "ann", "-V", "+1h")
    (bastion.folder / "ca.pub").write_text("# none\nssh-ed25519 nonsense\n")
    assert await code(bastion, "ann") == 255
