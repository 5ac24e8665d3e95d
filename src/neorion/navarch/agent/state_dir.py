"""State that an agent keeps over restarts: its credentials and its unsent events."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from neorion.keel.base import Id
from neorion.keel.clock import Ids
from neorion.navarch.agent.outbox import Outbox


class BootId(Id):
    """One life of one agent."""

    __slots__ = ()
    prefix = "boot"


class AgentCredentials(Struct, frozen=True, omit_defaults=True):
    """Proof that a machine is the one that joined before: its own secret, and its latest token."""

    secret: str = ""
    token: str = ""


class CredentialFile:
    """Credentials in a file that only its owner may read. Without a file they end with the agent."""

    def __init__(self, papers: AgentCredentials, path: Path | None = None) -> None:
        self.papers = papers
        self._path = path

    def put(self, token: str) -> None:
        if token != self.papers.token:
            self.papers = replace(self.papers, token=token)
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        fresh = self._path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(json.encode(self.papers))
        fresh.replace(self._path)

    @classmethod
    def kept_in(cls, path: Path, ids: Ids) -> Self:
        try:
            found = json.decode(path.read_bytes(), type=AgentCredentials)
        except (OSError, DecodeError, UnicodeDecodeError):
            found = AgentCredentials()
        made = cls(found if found.secret else AgentCredentials(ids.secret()), path)
        made._write()
        return made


@dataclass(frozen=True, slots=True)
class AgentState:
    """Everything that is kept."""

    wallet: CredentialFile
    outbox: Outbox

    @classmethod
    def kept_in(cls, folder: Path, ids: Ids) -> Self:
        """`folder` outlives the agent, and belongs to it alone."""
        boot = ids.new(BootId)
        return cls(CredentialFile.kept_in(folder / "papers.json", ids), Outbox(boot, folder / "outbox.jsonl"))

    @classmethod
    def of_one_life(cls, ids: Ids) -> Self:
        """State in memory, for agents that run in the control plane's process and need no proof."""
        return cls(CredentialFile(AgentCredentials()), Outbox(ids.new(BootId)))
