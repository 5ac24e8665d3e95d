"""`iris config`: cluster files, checked before anything is started from them."""

from pathlib import Path

import click

from neorion.keel.cli import App
from neorion.keel.cli.kit import Output, require_extra, show_findings

config = App("config", help="Check cluster files.")


@config.command("validate")
@click.argument("file", type=click.Path(path_type=Path))
def validate_command(out: Output, file: Path) -> int:
    """Check a cluster file; exit code 1 if it is wrong."""
    require_extra("server")
    from neorion.iris.adapters.cluster_file import ClusterFile  # noqa: PLC0415 -- the help does not need it
    from neorion.keel.config import InvalidConfig, load  # noqa: PLC0415 -- as above

    try:
        load(file, ClusterFile, out.env)
    except InvalidConfig as error:
        if not error.findings:
            raise
        return show_findings(out, error.findings)
    out.say(f"{file} is a cluster file without mistakes.")
    return show_findings(out, [])


@config.command("schema")
def schema_command(out: Output) -> None:
    """Print the JSON schema of cluster files, for editors."""
    require_extra("server")
    import json  # noqa: PLC0415 -- the help does not need it

    from neorion.iris.adapters.cluster_file import ClusterFile  # noqa: PLC0415 -- as above
    from neorion.keel.config import json_schema  # noqa: PLC0415 -- as above

    out.text(json.dumps(json_schema(ClusterFile), indent=2) + "\n")
