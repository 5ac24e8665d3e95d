"""The client side of WebSockets, on a connection that the server has upgraded."""

from collections import deque

from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.utils import accept_key

from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.http.message import Headers, ResponseHead

# The kubelet sends messages of 32 KiB; nothing on its streams is nearly as large as this.
MESSAGE_MAX = 4 * 2**20


def upgrade_headers(key: str, protocol: str) -> Headers:
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key),
        ("Sec-WebSocket-Protocol", protocol),
    ]


def accepted(head: ResponseHead, key: str, protocol: str) -> bool:
    """True if the server has accepted the upgrade and the subprotocol."""
    header = head.headers.get
    return (
        head.status == 101
        and header("sec-websocket-accept") == accept_key(key)
        and header("sec-websocket-protocol") == protocol
    )


class WebSocket:
    """Binary messages in both directions. One task receives; any task may send."""

    def __init__(self, link: BoundedStream, behind: bytes) -> None:
        self._link = link
        self._protocol = Protocol(Side.CLIENT, state=State.OPEN, max_size=MESSAGE_MAX)
        self._frames: deque[Frame] = deque()
        # The parts of a message that arrives in several frames.
        self._begun: list[bytes] = []
        # Parsed at the first receive, so that a close frame that came with the upgrade does not prevent sending.
        self._behind = behind

    async def send(self, message: bytes) -> None:
        if self._protocol.state is not State.OPEN:
            raise ConnectionResetError("the peer has closed")
        self._protocol.send_binary(message)
        self._flush()
        await self._link.drain()

    async def receive(self) -> bytes | None:
        """Returns the next message; None when the peer has closed or sent a text message."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                if frame.opcode in {Opcode.BINARY, Opcode.CONT}:
                    # Empty frames do not count towards the size limit, so a peer could send them without end.
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
        """Sends a close frame to an open peer, after everything that was sent before."""
        if not self._link.stands:
            return
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            self._flush()
        self._link.finish()

    def _take(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        # The protocol answers pings and close frames itself, if the connection is open.
        if self._link.stands:
            self._flush()
        self._frames.extend(event for event in self._protocol.events_received() if isinstance(event, Frame))

    def _flush(self) -> None:
        if data := b"".join(self._protocol.data_to_send()):
            self._link.write(data)
