"""What a command uses while it runs: output, tables, findings, questions, optional packages.

Apart from the frame (`neorion.keel.cli`), because the help of a command line needs nothing of it.
`progress` is imported from its own module: it brings a clock along, and asyncio with it.
"""

from neorion.keel.cli.kit.findings import FINDINGS, show_findings
from neorion.keel.cli.kit.optional import extras, install_command, missing_packages, require_extra
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.kit.question import confirm
from neorion.keel.cli.kit.table import Column, Table
from neorion.keel.cli.kit.terminal import Screen, Tone, escape

__all__ = [
    "FINDINGS",
    "Column",
    "Output",
    "Screen",
    "Table",
    "Tone",
    "confirm",
    "escape",
    "extras",
    "install_command",
    "missing_packages",
    "require_extra",
    "show_findings",
]
