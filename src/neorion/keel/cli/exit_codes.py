"""The exit codes of every command line, the same in all of them. Errors bring their family's own."""

from enum import IntEnum


class Exit(IntEnum):
    """What a script may count on. docs/guides/cli.md shows the same table."""

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
    # Docker's habit: whatever else comes out of such a command is the user's own program speaking.
    NOT_STARTED = 125
    INTERRUPTED = 130
    # 128 + SIGPIPE, as of any program whose reader went away.
    BROKEN_PIPE = 141
