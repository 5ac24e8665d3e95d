"""Setup commands in the file: what is wrong with them is said before anything is bought."""

from pathlib import Path

import asyncssh
import pytest

from neorion.keel.base import Error
from neorion.keel.config import InvalidConfig, loads
from neorion.navarch.adapters.config_file import ConfigFile, pool_specs
from neorion.navarch.app.bootstrapper import make_bootstrapper, reachable

FILE = """
server: {{ address: "{address}", external_address: "{external}" }}
providers: {{ fake: {{}} }}
pools:
  - name: training
    provider: fake
    instance_type: gpu_8x_h100_sxm5
    max_nodes: 1
    setup_commands: ["{command}"]
    {more}
"""
KEY = "ssh_private_key_path: key"


def file(command: str, more: str = KEY, address: str = "0.0.0.0:50051", external: str = "") -> ConfigFile:
    return loads(FILE.format(command=command, more=more, address=address, external=external), ConfigFile, {})


def test_a_variable_that_does_not_exist_is_refused_with_a_suggestion():
    with pytest.raises(InvalidConfig) as refused:
        file("agent --node-id {{.NodeId}}")
    (finding,) = refused.value.findings
    assert (finding.sentence, finding.hint) == (
        'There is no variable "NodeId".',
        'did you mean "NodeID"?',
    )


def test_commands_need_a_key_of_the_pool_or_of_all():
    with pytest.raises(InvalidConfig):
        file("true", more="")
    file("true", more="\ndefaults: { ssh_private_key_path: key }")


@pytest.mark.parametrize(
    ("address", "external", "there"),
    [
        ("0.0.0.0:50051", "", ""),
        (":50051", "navarch.example.com:50051", "https://navarch.example.com:50051"),
        ("0.0.0.0:50051", "https://navarch.example.com", "https://navarch.example.com"),
        ("10.0.0.7:50051", "", "https://10.0.0.7:50051"),
        ("[fd00::7]:50051", "", "https://[fd00::7]:50051"),
    ],
)
def test_agents_are_told_where_the_control_plane_is_if_anybody_knows(address: str, external: str, there: str):
    assert reachable(file("true", address=address, external=external)) == there


def test_commands_that_name_a_control_plane_which_nobody_can_find_are_refused(tmp_path: Path):
    wanted = file("agent --server {{.ControlPlane}}")
    with pytest.raises(Error) as refused:
        make_bootstrapper(wanted, pool_specs(wanted), tmp_path)
    assert refused.value.code == "bootstrap.no_key"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "key"))
    with pytest.raises(Error) as refused:
        make_bootstrapper(wanted, pool_specs(wanted), tmp_path)
    assert refused.value.code == "navarch.no_address"
    known = file("agent --server {{.ControlPlane}}", external="navarch.example.com:50051")
    assert make_bootstrapper(known, pool_specs(known), tmp_path) is not None
