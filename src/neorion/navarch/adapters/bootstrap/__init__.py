"""Setting machines up over SSH: host keys that are known before the machine is, and commands with what they said.

Owns asyncssh; nothing of it leaves this room. What to run, and when, is decided elsewhere.
"""

from neorion.navarch.adapters.bootstrap.ssh import SshBootstrapper

__all__ = ["SshBootstrapper"]
