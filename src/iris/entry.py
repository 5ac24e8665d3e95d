"""How the doors that are programs reach the one command line behind them."""

import sys

from neorion.iris.app.main import main


def enter(room: str) -> None:
    """Runs `neorion.iris ROOM` with this process's arguments, and ends with its exit code."""
    sys.exit(main([room, *sys.argv[1:]]))
