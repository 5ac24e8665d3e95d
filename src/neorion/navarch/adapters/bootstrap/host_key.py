"""Host keys that are known before their machines are: made of a seed, and given to the machine with its first boot."""

import base64
import hashlib
import struct
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_KIND: Final = b"ssh-ed25519"
_BLOCK: Final = 8
_LINE: Final = 70

# Only the key of the kind that is asked for later is replaced; the others are the image's own business.
_SCRIPT: Final = """#!/bin/sh
# The key by which the control plane tells this machine from every other.
set -eu
umask 077
cat > /etc/ssh/ssh_host_ed25519_key <<'KEY'
{private}
KEY
umask 022
rm -f /etc/ssh/ssh_host_ed25519_key.pub
printf '%s\\n' '{public}' > /etc/ssh/ssh_host_ed25519_key.pub
systemctl restart ssh || systemctl restart sshd || service ssh restart
"""


def public_key(seed: bytes) -> str:
    """The public key in the format of a known_hosts file."""
    return f"{_KIND.decode()} {base64.b64encode(_public_blob(_raw_public(seed))).decode()}"


def private_key(seed: bytes) -> str:
    """The private key in OpenSSH's format, which every sshd reads.

    The same seed gives the same key, so that a repeated purchase is identical.
    """
    secret = _secret(seed)
    public = _raw_public(seed)
    # Two equal numbers by which a reader sees that it decrypted well; they need not be secret or different each time.
    check = hashlib.sha256(b"check" + secret).digest()[:4]
    inner = check * 2 + _public_blob(public) + _string(secret + public) + _string(b"")
    inner += bytes(range(1, _BLOCK - len(inner) % _BLOCK + 1)) if len(inner) % _BLOCK else b""
    blob = (
        b"openssh-key-v1\0"
        + _string(b"none") * 2
        + _string(b"")
        + struct.pack(">I", 1)
        + _string(_public_blob(public))
        + _string(inner)
    )
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----"])


def startup_script(seed: bytes) -> str:
    return _SCRIPT.format(private=private_key(seed), public=public_key(seed))


def _secret(seed: bytes) -> bytes:
    return hashlib.sha256(seed).digest()


def _raw_public(seed: bytes) -> bytes:
    key = Ed25519PrivateKey.from_private_bytes(_secret(seed))
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _public_blob(public: bytes) -> bytes:
    return _string(_KIND) + _string(public)


def _string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
