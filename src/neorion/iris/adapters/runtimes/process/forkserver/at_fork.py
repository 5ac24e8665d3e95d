"""Fork handlers of modules, which repair their locks and lists of threads.

The fork server has one thread without locks when it forks, so nothing needs a repair, and the handlers would cost each
child a third of its start. Tasks may log in threads while another one forks, so they get the captured handlers.
"""

import os
from collections.abc import Callable

_captured: list[dict[str, Callable[[], object]]] = []


def capture(**hooks: Callable[[], object]) -> None:
    """Replaces `os.register_at_fork` while the fork server imports the modules of tasks."""
    _captured.append(hooks)


def install() -> None:
    """Registers the captured handlers, in a child before its task runs."""
    for hooks in _captured:
        os.register_at_fork(**hooks)
