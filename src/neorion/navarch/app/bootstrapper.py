"""The bootstrapper of new machines, and the variables that its commands get from this control plane."""

from collections.abc import Mapping
from pathlib import Path

from neorion.keel.base import Invalid
from neorion.keel.cli.kit import require_extra
from neorion.navarch.adapters.config_file import ConfigFile
from neorion.navarch.model import PoolSpec
from neorion.navarch.model.setup_template import variables_in
from neorion.navarch.ports import Bootstrapper


def make_bootstrapper(file: ConfigFile, specs: Mapping[str, PoolSpec], folder: Path) -> Bootstrapper | None:
    """None where no pool has setup commands."""
    wanted = [spec for spec in specs.values() if spec.bootstrap.commands]
    if not wanted:
        return None
    require_extra("ssh")
    from neorion.navarch.adapters.bootstrap import SshBootstrapper  # noqa: PLC0415 -- only where it is used

    made = SshBootstrapper(folder)
    for spec in wanted:
        made.check_key(spec.bootstrap.key_path)
        named = {name for command in spec.bootstrap.commands for name in variables_in(command)}
        if "ControlPlane" in named and not reachable(file):
            raise Invalid(
                "navarch.no_address",
                f"The setup commands of {spec.name} use the control plane's address, and the file has none.",
                hint="Write external_address: below server:.",
            )
    return made


def reachable(file: ConfigFile) -> str:
    """Where agents reach it, as far as the file tells; a wildcard is no place to go to."""
    scheme = "http" if file.server.tls == "none" else "https"
    given = file.server.external_address
    if given:
        return given if "://" in given else f"{scheme}://{given}"
    host, port = file.server.bind_address
    if host in ("0.0.0.0", "::") or not port:  # noqa: S104 -- the wildcard itself
        return ""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
