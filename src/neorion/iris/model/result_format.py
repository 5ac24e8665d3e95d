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


@dataclass(frozen=True, slots=True)
class TaskResult:
    """`text` is the traceback of an error, and empty for a value."""

    status: ResultStatus
    text: str
    pickle: bytes


def parse(body: bytes) -> TaskResult:
    if len(body) >= HEAD.size:
        magic, status, text_bytes, pickle_bytes = HEAD.unpack_from(body)
        if magic == MAGIC and len(body) == HEAD.size + text_bytes + pickle_bytes:
            start = HEAD.size + text_bytes
            return TaskResult(
                ResultStatus(status), body[HEAD.size : start].decode(errors="replace"), body[start:]
            )
    raise Invalid("iris.result", "These bytes are no whole result.", hint="run the task again")
