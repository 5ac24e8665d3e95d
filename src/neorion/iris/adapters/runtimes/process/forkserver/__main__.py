"""The program `python -m neorion.iris.adapters.runtimes.process.forkserver ROOT`.

It ends when its fork server listens, and leaves two processes behind: the guardian and, below it, the fork server.
"""

import os
import signal
import sys
from pathlib import Path

from neorion.iris.adapters.runtimes.process.forkserver import at_fork


def heed_all_signals() -> None:
    """`nohup` and shells that start something behind them leave signals ignored, and that would reach every task."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    # As in every Python that was not started so: to functions it is an exception, to commands the default.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    heed_all_signals()
    register, os.register_at_fork = os.register_at_fork, at_fork.capture
    # Everything that tasks find loaded is loaded here.
    from neorion.iris.adapters.runtimes.process.forkserver.daemonize import daemonize  # noqa: PLC0415 -- not before the line above

    os.register_at_fork = register
    return daemonize(Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
