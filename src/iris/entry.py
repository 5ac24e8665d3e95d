"""How the doors that are programs reach the one command line behind them."""

import sys
from collections.abc import Callable
from importlib import import_module


def enter(room: str) -> None:
    """Runs `neorion.iris ROOM` with this process's arguments, and ends with its exit code."""
    main: Callable[[list[str]], int] = import_module("neorion.iris.__main__").main
    sys.exit(main([room, *sys.argv[1:]]))
