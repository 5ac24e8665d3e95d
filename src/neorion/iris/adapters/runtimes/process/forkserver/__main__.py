"""The program `python -m neorion.iris.adapters.runtimes.process.forkserver ROOT`.

It exits when its fork server listens, and leaves two processes: the supervisor and, below it, the fork server.
"""

import os
import signal
import sys
from pathlib import Path

from neorion.iris.adapters.runtimes.process.forkserver import at_fork


def restore_signals() -> None:
    """Resets signals that `nohup` and shells set to ignored, which every task would inherit."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    # Python's usual handler: for functions SIGINT is an exception, for commands the default.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    restore_signals()
    register, os.register_at_fork = os.register_at_fork, at_fork.capture
    # Imports everything that tasks need.
    from neorion.iris.adapters.runtimes.process.forkserver.daemonize import daemonize  # noqa: PLC0415 -- not before the line above

    os.register_at_fork = register
    return daemonize(Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
