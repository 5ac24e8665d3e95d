"""Host keys of servers, in the form OpenSSH keeps them."""

from neorion.devservers.ports import HostKey


class HostKeyGenerator:
    """Makes Ed25519 keys: short, and known to every client of the last ten years."""

    def host_key(self) -> HostKey:
        # Several megabytes, which an operator of servers without SSH never needs.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 -- see above
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 -- see above
            Encoding,
            NoEncryption,
            PrivateFormat,
            PublicFormat,
        )

        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        return HostKey(private.decode(), public.decode())
