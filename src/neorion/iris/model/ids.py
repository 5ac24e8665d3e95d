"""Ids, digests and job names."""

import re
from typing import Self

from neorion.keel.base import Id, Invalid

NAME_DEPTH_MAX = 16
NAME_CHARS_MAX = 512
_SEGMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class JobId(Id):
    """Id of one submission. A job submitted again under the same name has another id."""

    __slots__ = ()
    prefix = "job"


class AttemptId(Id):
    """Id of one attempt at a task, used in messages, file names, Pod names and log keys."""

    __slots__ = ()
    prefix = "attempt"


class WorkerId(Id):
    """Id of a worker, from its registration to its end."""

    __slots__ = ()
    prefix = "worker"


class SliceId(Id):
    """Id of a slice: machines that are created and deleted together."""

    __slots__ = ()
    prefix = "slice"


class Digest(str):
    """SHA-256 of a blob in hexadecimal, which is its name."""

    __slots__ = ()


class JobName(str):
    """Path of a job: /user/job/child. The parent of a name is the name without its last segment."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        segments = text.split("/")
        wrong = (
            len(text) > NAME_CHARS_MAX
            or not 3 <= len(segments) <= NAME_DEPTH_MAX + 1
            or segments[0] != ""
            or not all(_SEGMENT.fullmatch(segment) for segment in segments[1:])
        )
        if wrong:
            raise Invalid(
                "iris.name",
                f"{text[:80]!r} is not a valid job name.",
                hint="Use up to 63 letters, digits, '.', '_' and '-', beginning and ending with a letter or digit.",
            )
        return super().__new__(cls, text)

    @classmethod
    def known(cls, text: str) -> "JobName":
        """Makes a name for a lookup without a check. An invalid name has no job."""
        return str.__new__(cls, text)

    @property
    def user(self) -> str:
        return self.split("/", 2)[1]

    @property
    def last(self) -> str:
        return self.rpartition("/")[2]
