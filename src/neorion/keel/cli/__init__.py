"""The framework of every command line: commands, options, help, completion and exit codes.

What commands use inside is in `neorion.keel.cli.kit`. Built on click, and cheap to import, so that `--help`
answers at once: everything heavier is imported by the command that needs it. Contains no command itself.
"""

from neorion.keel.cli.app import App, Command
from neorion.keel.cli.exit_codes import Exit
from neorion.keel.cli.main import run
from neorion.keel.cli.shared_options import (
    ColorMode,
    Format,
    SharedOptions,
    SuggestingChoice,
    dry_run_option,
    yes_option,
)

__all__ = [
    "App",
    "ColorMode",
    "Command",
    "Exit",
    "Format",
    "SharedOptions",
    "SuggestingChoice",
    "dry_run_option",
    "run",
    "yes_option",
]
