"""Message codecs of the server, with a bound on nesting that holds before a message is parsed.

The JSON parser of the protobuf extension recurses once per level and has no limit of its own. A few kilobytes of open
brackets overflow its stack, which ends the process. The binary parser limits itself to 100 levels.
"""

import re
from itertools import accumulate
from typing import Final

from connectrpc.codec import Codec, proto_binary_codec, proto_json_codec
from protobuf import Message

from neorion.keel.base import Invalid
from neorion.keel.rpc import connect_errors

# Far beyond our own messages, which have five levels, and far below what the parser's stack holds.
JSON_DEPTH_MAX: Final = 64

# The end of a string is optional, so that a string without one is read once and not once per quote.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?"?', re.DOTALL)
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_OTHER: Final = bytes(set(range(256)) - set(b"[]{}"))


def json_depth(body: bytes | bytearray) -> int:
    """The levels of nesting that a parser can reach. It stops at a bracket without a partner, so none is missed."""
    steps = _STRING.sub(b"", body).translate(_STEPS, _OTHER)
    return max(accumulate(memoryview(steps).cast("b")), default=0)


def check_depth(body: bytes | bytearray) -> None:
    """Refuses JSON that is nested too deeply."""
    if body.count(b"[") + body.count(b"{") > JSON_DEPTH_MAX and json_depth(body) > JSON_DEPTH_MAX:
        raise Invalid(
            "rpc.too_deep",
            f"The JSON message is nested more than {JSON_DEPTH_MAX} levels deep.",
            hint="Send a flatter message.",
        )


class _JsonCodec:
    """Protobuf's JSON, for people and for curl. A misspelt name is refused."""

    def __init__(self) -> None:
        self._codec = proto_json_codec(ignore_unknown_fields=False)

    def name(self) -> str:
        return self._codec.name()

    def encode(self, message: Message) -> bytes:
        return self._codec.encode(message)

    def decode(self, data: bytes | bytearray, message_class: type[Message]) -> Message:
        try:
            check_depth(data)
        except Invalid as error:
            # Connect would make an error without a code of any other.
            raise connect_errors.to_connect(error) from None
        return self._codec.decode(data, message_class)


def codecs() -> list[Codec[Message, Message]]:
    """Binary for machines, where an unknown field comes from a newer version; JSON for people."""
    return [proto_binary_codec(), _JsonCodec()]
