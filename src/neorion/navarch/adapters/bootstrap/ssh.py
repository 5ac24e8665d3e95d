"""Commands on a new machine, by asyncssh: the machine proves who it is first, and what it says is bounded."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import asyncssh

from neorion.keel.base import Denied, Invalid, Retry
from neorion.navarch.adapters.bootstrap.host_key import public_key, startup_script
from neorion.navarch.ports import CommandResult, SshTarget

CONNECT_S: Final = 15.0
# Drivers and images are large; what takes longer than this hangs.
COMMAND_S: Final = 900.0
# The end of what a command says is where its failure is.
SAID_MAX: Final = 4_000
_CHUNK: Final = 4_096


class SshBootstrapper:
    """Enters machines as their pool's user, with their pool's key. Relative paths of keys start at `folder`."""

    def __init__(self, folder: Path, command_s: float = COMMAND_S) -> None:
        self._folder = folder
        self._command_s = command_s

    def startup(self, seed: bytes) -> str:
        return startup_script(seed)

    def check_key(self, path: str) -> None:
        """Refused at the start, not when the first machine has been paid for."""
        _client_key(self._folder / path)

    @asynccontextmanager
    async def enter(self, door: SshTarget) -> AsyncGenerator["SshShell"]:
        connection = await _connect(door, _client_key(self._folder / door.key_path))
        try:
            yield SshShell(connection, self._command_s)
        finally:
            connection.abort()
            with anyio.CancelScope(shield=True):
                await connection.wait_closed()


class SshShell:
    """A machine that was entered. `host_key` is the one it showed."""

    def __init__(self, connection: asyncssh.SSHClientConnection, command_s: float) -> None:
        self._connection = connection
        self._command_s = command_s
        shown = connection.get_server_host_key()
        self.host_key = _without_comment(shown) if shown is not None else ""

    async def run(self, command: str) -> CommandResult:
        said = ""
        try:
            with anyio.fail_after(self._command_s):
                async with self._connection.create_process(
                    command, stdin=asyncssh.DEVNULL, stderr=asyncssh.STDOUT, errors="replace"
                ) as process:
                    while chunk := await process.stdout.read(_CHUNK):
                        said = (said + chunk)[-SAID_MAX:]
                    done = await process.wait()
        except TimeoutError:
            return CommandResult(None, said, f"it did not end within {self._command_s:g} s")
        except (asyncssh.Error, OSError) as error:
            raise _broken(error) from None
        # A command that a signal ended has no status.
        return CommandResult(
            done.exit_status, said, "" if done.exit_status is not None else "a signal ended it"
        )


async def _connect(door: SshTarget, key: asyncssh.SSHKey) -> asyncssh.SSHClientConnection:
    """By the first of its addresses that answers."""
    known = door.host_key or ("" if door.first_contact else public_key(door.seed))
    none: list[asyncssh.SSHKey] = []
    trusted = ([asyncssh.import_public_key(known)], none, none) if known else None
    failed: Exception = OSError("it has no address")
    for address in door.addresses:
        try:
            return await asyncssh.connect(
                address,
                door.port,
                username=door.user,
                client_keys=[key],
                known_hosts=trusted,
                agent_path=None,
                config=None,
                preferred_auth="publickey",
                connect_timeout=CONNECT_S,
                login_timeout=CONNECT_S,
            )
        except asyncssh.HostKeyNotVerifiable:
            raise Retry(
                "bootstrap.host_key",
                f"The machine at {address} shows another host key than it was given.",
                hint="Wait if it is still booting; otherwise check that its address is its own and that its image runs startup scripts.",
            ) from None
        except asyncssh.PermissionDenied:
            raise Retry(
                "bootstrap.not_let_in",
                f"The machine at {address} does not let {door.user} in.",
                hint="Wait if it is still booting; otherwise check ssh_user, ssh_keys and ssh_private_key_path.",
            ) from None
        except (asyncssh.Error, OSError, TimeoutError) as error:
            failed = error
    raise _broken(failed)


def _broken(error: Exception) -> Retry:
    return Retry(
        "bootstrap.unreachable",
        f"The machine cannot be entered: {error or type(error).__name__}.",
        hint="Check that the control plane reaches the SSH port of the machine.",
    )


def _client_key(path: Path) -> asyncssh.SSHKey:
    try:
        return asyncssh.read_private_key(path)
    except OSError as error:
        raise Denied(
            "bootstrap.no_key",
            f"The key {path} cannot be read: {error.strerror}.",
            hint="Check ssh_private_key_path.",
        ) from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        raise Invalid(
            "bootstrap.key",
            f"{path} holds no private key that can be used.",
            hint="Use a key without a passphrase.",
        ) from None


def _without_comment(key: asyncssh.SSHKey) -> str:
    """Algorithm and key, without the comment."""
    return " ".join(key.export_public_key().decode().split()[:2])
