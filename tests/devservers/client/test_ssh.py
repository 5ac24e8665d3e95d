import subprocess
from pathlib import Path

import pytest

from neorion.devservers.client import CreateRequest, SshLogin, find_ssh_login
from neorion.devservers.client.ssh import matching_private_key
from neorion.devservers.model import DevServerSpec, DevServerStatus, Ssh
from neorion.devservers.testing import a_server
from neorion.keel.base import Invalid

ANN = "ssh-ed25519 AAAA ann@laptop"


def keys(folder: Path, **public: str) -> Path:
    for name, line in public.items():
        (folder / f"{name}.pub").write_text(f"{line}\n")
        (folder / name).write_text("private")
    return folder


def test_a_key_fits_whatever_its_comment_says(tmp_path: Path):
    folder = keys(tmp_path, id_rsa="ssh-rsa CCCC", id_ed25519="ssh-ed25519 AAAA elsewhere")
    assert matching_private_key([ANN], folder) == tmp_path / "id_ed25519"
    assert matching_private_key(["ssh-ed25519 BBBB"], folder) is None


def test_a_public_key_without_its_private_half_opens_nothing(tmp_path: Path):
    (keys(tmp_path, id_ed25519=ANN) / "id_ed25519").unlink()
    assert matching_private_key([ANN], tmp_path) is None


def test_there_is_no_way_into_a_server_without_ssh_or_without_a_key(tmp_path: Path):
    spec = DevServerSpec(flavor="cpu-small", ssh=Ssh(public_keys=(ANN,)))
    served = DevServerStatus(ssh_endpoint="mydev-ssh.dev-ann.svc:22", ssh_host_key="ssh-ed25519 HOST")
    assert find_ssh_login(a_server(spec, served), tmp_path) is None
    folder = keys(tmp_path, id_ed25519=ANN)
    assert find_ssh_login(a_server(spec), folder) is None
    assert find_ssh_login(a_server(DevServerSpec(flavor="cpu-small"), served), folder) is None


def test_the_client_trusts_the_server_it_was_told_of_and_no_other(tmp_path: Path):
    way = SshLogin("mydev", "mydev.dev-ann", "ssh-ed25519 HOST", tmp_path / "id")
    command = way.command(4022, tmp_path / "known")
    assert command[0] == "ssh"
    assert command[-3:] == ["-p", "4022", "dev@127.0.0.1"]
    assert {"StrictHostKeyChecking=yes", "HostKeyAlias=mydev.dev-ann", f"IdentityFile={tmp_path}/id"} <= set(
        command
    )


FORWARDING = """\
Host *
  ForwardAgent yes
  ForwardX11 yes
  LocalForward 4000 localhost:4000
  RemoteForward 4001 localhost:22
  PermitLocalCommand yes
  LocalCommand touch here
  ProxyCommand nc proxy 22
"""


@pytest.mark.attack(46)
@pytest.mark.needs("ssh")
def test_nothing_of_the_users_machine_is_forwarded_whatever_its_configuration_says(tmp_path: Path):
    (tmp_path / "config").write_text(FORWARDING)
    (tmp_path / "config").chmod(0o600)
    login = SshLogin("mydev", "mydev.dev-ann", "ssh-ed25519 HOST", tmp_path / "id")

    def settings(*words: str) -> set[str]:
        command = ["ssh", "-F", str(tmp_path / "config"), "-G", *words]
        return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())

    forwards = {"forwardagent yes", "forwardx11 yes", "permitlocalcommand yes", "proxycommand nc proxy 22"}
    assert forwards <= settings("dev@127.0.0.1")
    ours = settings(*login.command(4022, tmp_path / "known")[1:])
    assert not forwards & ours
    assert not {line for line in ours if line.startswith(("localforward", "remoteforward"))}


@pytest.mark.parametrize("text", ["-----BEGIN OPENSSH PRIVATE KEY-----", "hello", "", f"{ANN}\n{ANN}"])
def test_what_is_no_public_key_is_refused_before_anything_is_made(text: str):
    with pytest.raises(Invalid) as refused:
        CreateRequest(name="mydev", ssh_keys=(text,))
    assert refused.value.code == "devservers.ssh_key"


def test_public_keys_are_written_into_the_server():
    assert CreateRequest(name="mydev", ssh_keys=(ANN,)).manifest("dev-ann", "cpu-small")["spec"]["ssh"] == {
        "publicKeys": [ANN]
    }
