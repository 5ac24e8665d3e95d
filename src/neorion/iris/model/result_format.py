"""The form of a result: a head that says what it is, a text for people, and a pickle that only its owner loads."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from neorion.keel.base import Invalid

MAGIC = b"IRISRES1"
HEAD = struct.Struct(">8sBxxxIQ")


class ResultStatus(IntEnum):
    """What the pickle holds."""

    VALUE = 0
    ERROR = 1


# What a head may say. Any other number comes from a task that wrote its result by hand.
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
