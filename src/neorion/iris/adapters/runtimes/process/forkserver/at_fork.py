"""What modules want done around a fork: it repairs their locks and lists of threads.

The fork server has one thread, which holds no lock when it forks: there is nothing to repair, and trying to costs each
child a third of its start. Tasks have threads that log while another one forks: they are given what the server was kept from.
"""

import os
from collections.abc import Callable

_held: list[dict[str, Callable[[], object]]] = []


def capture(**hooks: Callable[[], object]) -> None:
    """In the place of `os.register_at_fork` while the fork server loads what tasks find loaded."""
    _held.append(hooks)


def install() -> None:
    """In a child, before it runs anything of its task."""
    for hooks in _held:
        os.register_at_fork(**hooks)
