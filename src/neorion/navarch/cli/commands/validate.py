"""`navarch validate`: configuration files, checked before anything is started from them."""

from pathlib import Path

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output, require_extra, show_findings


@click.command("validate", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
def validate(out: Output, file: Path) -> int:
    """Check a configuration file."""
    require_extra("server", "navarch")
    from neorion.keel.config import InvalidConfig, load  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.adapters.config_file import (  # noqa: PLC0415 -- as above
        ConfigFile,
        policies_of,
        pool_specs,
    )

    try:
        policies_of(pool_specs(load(file, ConfigFile, out.env)), file.parent, out.env)
    except InvalidConfig as error:
        if not error.findings:
            raise
        return show_findings(out, error.findings)
    out.say(f"{file} is a configuration without mistakes.")
    return show_findings(out, [])
