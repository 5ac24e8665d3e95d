"""Entry point of the programs whose names documents fix: each runs a command of `python -m neorion.iris`."""

import sys

from neorion.iris.app.main import main


def run_group(group: str) -> None:
    """Runs `python -m neorion.iris GROUP` with this process's arguments, and exits with its code."""
    sys.exit(main([group, *sys.argv[1:]]))
