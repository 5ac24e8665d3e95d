"""Implementation of `iris config`."""

import json
from pathlib import Path

from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.keel.cli.kit import Output, show_findings
from neorion.keel.config import InvalidConfig, json_schema, load


def validate_command(out: Output, file: Path) -> int:
    try:
        load(file, ClusterFile, out.env)
    except InvalidConfig as error:
        if not error.findings:
            raise
        return show_findings(out, error.findings)
    out.say(f"{file} is valid.")
    return show_findings(out, [])


def schema_command(out: Output) -> None:
    out.text(json.dumps(json_schema(ClusterFile), indent=2) + "\n")
