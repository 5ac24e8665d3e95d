"""The work of `navarch validate`."""

from pathlib import Path

from neorion.keel.cli.kit import Output, show_findings
from neorion.keel.config import InvalidConfig, load
from neorion.navarch.adapters.config_file import ConfigFile, policies_of, pool_specs


def validate(out: Output, file: Path) -> int:
    try:
        policies_of(pool_specs(load(file, ConfigFile, out.env)), file.parent, out.env)
    except InvalidConfig as error:
        if not error.findings:
            raise
        return show_findings(out, error.findings)
    out.say(f"{file} is a configuration without mistakes.")
    return show_findings(out, [])
