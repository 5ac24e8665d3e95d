"""The client's half of WebSockets, on a link that a server has agreed to change over."""

from collections import deque

from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.utils import accept_key

from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.http.message import Headers, ResponseHead

# The kubelet's pieces have 32 KiB; nothing on its streams comes near this.
MESSAGE_MAX = 4 * 2**20


def greeting(key: str, protocol: str) -> Headers:
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key),
        ("Sec-WebSocket-Protocol", protocol),
    ]


def accepted(head: ResponseHead, key: str, protocol: str) -> bool:
    """Whether the server has read the greeting and speaks the protocol."""
    told = head.headers.get
    return (
        head.status == 101
        and told("sec-websocket-accept") == accept_key(key)
        and told("sec-websocket-protocol") == protocol
    )


class WebSocket:
    """Messages of bytes, both ways. One task receives; any may send."""

    def __init__(self, link: BoundedStream, behind: bytes) -> None:
        self._link = link
        self._protocol = Protocol(Side.CLIENT, state=State.OPEN, max_size=MESSAGE_MAX)
        self._frames: deque[Frame] = deque()
        # Of a message that comes in several frames.
        self._begun: list[bytes] = []
        # Read when somebody receives: who still speaks is not held up by a goodbye that came with the greeting.
        self._behind = behind

    async def send(self, message: bytes) -> None:
        if self._protocol.state is not State.OPEN:
            raise ConnectionResetError("the peer has closed")
        self._protocol.send_binary(message)
        self._flush()
        await self._link.drain()

    async def receive(self) -> bytes | None:
        """The next message, or nothing when the peer has closed, is gone, or speaks of something else."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                if frame.opcode in {Opcode.BINARY, Opcode.CONT}:
                    # Empty pieces count against no limit of the size, and could be sent without end.
                    if frame.data:
                        self._begun.append(bytes(frame.data))
                    if frame.fin:
                        message = b"".join(self._begun)
                        self._begun.clear()
                        return message
                elif frame.opcode in {Opcode.TEXT, Opcode.CLOSE}:
                    return None
            if self._protocol.state is not State.OPEN:
                return None
            data = self._behind or await self._link.some()
            self._behind = b""
            if not data:
                return None
            self._take(data)

    def close(self) -> None:
        """Says goodbye to who is still there, after all that was sent."""
        if not self._link.stands:
            return
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            self._flush()
        self._link.finish()

    def _take(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        # Pings and goodbyes are answered by the protocol itself, if anybody is left to hear it.
        if self._link.stands:
            self._flush()
        self._frames.extend(event for event in self._protocol.events_received() if isinstance(event, Frame))

    def _flush(self) -> None:
        if data := b"".join(self._protocol.data_to_send()):
            self._link.write(data)
