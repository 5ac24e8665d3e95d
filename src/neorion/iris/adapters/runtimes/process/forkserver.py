"""The program `python -m neorion.iris.adapters.runtimes.process.forkserver ROOT`.

It ends when its fork server listens, and leaves two processes behind: the guardian and, below it, the fork server.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path


def no_hooks(
    *,
    before: Callable[[], object] | None = None,
    after_in_parent: Callable[[], object] | None = None,
    after_in_child: Callable[[], object] | None = None,
) -> None:
    """Modules register here what repairs their locks and lists of threads after a fork.

    The fork server has one thread, which holds no lock when it forks: there is nothing to repair, and trying to costs each
    child a third of its start.
    """


def heed_all_signals() -> None:
    """`nohup` and shells that start something behind them leave signals ignored, and that would reach every task."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    # As in every Python that was not started so: to functions it is an exception, to commands the default.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    heed_all_signals()
    register, os.register_at_fork = os.register_at_fork, no_hooks
    # Everything that tasks find loaded is loaded here.
    from neorion.iris.adapters.runtimes.process.birth import bear  # noqa: PLC0415 -- not before the line above

    os.register_at_fork = register
    return bear(Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
