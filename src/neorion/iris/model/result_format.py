"""Format of a result: a header, a readable text, and a pickle that only the owner of the task loads."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from neorion.keel.base import Invalid

MAGIC = b"IRISRES1"
HEAD = struct.Struct(">8sBxxxIQ")


class ResultStatus(IntEnum):
    """Kind of the pickled content."""

    VALUE = 0
    ERROR = 1


# Valid values in a header. Any other number comes from a task that wrote its result itself.
STATUSES = frozenset(ResultStatus)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """`text` is the traceback of an error, and empty for a value."""

    status: ResultStatus
    text: str
    pickle: bytes


def parse(body: bytes) -> TaskResult:
    if len(body) >= HEAD.size:
        magic, status, text_bytes, pickle_bytes = HEAD.unpack_from(body)
        whole = len(body) == HEAD.size + text_bytes + pickle_bytes
        if magic == MAGIC and whole and status in STATUSES:
            start = HEAD.size + text_bytes
            return TaskResult(
                ResultStatus(status), body[HEAD.size : start].decode(errors="replace"), body[start:]
            )
    raise Invalid(
        "iris.result", "The result of the task is incomplete or malformed.", hint="Run the task again."
    )
