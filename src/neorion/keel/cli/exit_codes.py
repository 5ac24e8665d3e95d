"""The exit codes of every command line. Each error family has its own."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes that scripts may rely on. docs/guides/cli.md shows the same table."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    CONFLICT = 5
    UNREACHABLE = 6
    NO_CAPACITY = 7
    QUOTA = 8
    TIMEOUT = 124
    # Docker's convention: every other code of such a command comes from the user's own program.
    NOT_STARTED = 125
    INTERRUPTED = 130
    # 128 + SIGPIPE, as for any program whose reader closed the pipe.
    BROKEN_PIPE = 141
