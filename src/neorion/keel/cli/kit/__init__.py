"""Parts that a command uses while it runs: output, tables, findings, questions, optional packages.

Separate from `neorion.keel.cli`, because the help of a command line imports nothing of it. Import `progress` from its
own module: it imports a clock and asyncio. Parts that few commands use load on first use.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.kit.table import Column, Table
from neorion.keel.cli.kit.terminal import TerminalStream, Tone, escape

if TYPE_CHECKING:
    from neorion.keel.cli.kit.confirmation import confirm
    from neorion.keel.cli.kit.findings import FINDINGS, show_findings
    from neorion.keel.cli.kit.optional_extras import extras, install_command, missing_packages, require_extra

__all__ = [
    "FINDINGS",
    "Column",
    "Output",
    "Table",
    "TerminalStream",
    "Tone",
    "confirm",
    "escape",
    "extras",
    "install_command",
    "missing_packages",
    "require_extra",
    "show_findings",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "findings": ("FINDINGS", "show_findings"),
        "optional_extras": ("extras", "install_command", "missing_packages", "require_extra"),
        "confirmation": ("confirm",),
    },
)
