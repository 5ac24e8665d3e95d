"""The slots of all clusters on this machine, of all users."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from neorion.drydock.host import UndoLog
from neorion.drydock.layout import slot_is_free
from neorion.drydock.network import SLOTS
from neorion.keel.base import Conflict, NoCapacity

# A link for each taken slot, to the cluster's folder: creating a link is atomic and exclusive.
CLAIMS: Final = Path(tempfile.gettempdir()) / "neorion-drydock"


def claim_slot(claims: Path, folder: Path, ledger: UndoLog) -> int:
    """Takes a free slot for the cluster in `folder`, until the change is undone."""
    for slot in range(SLOTS):
        link = claims / str(slot)
        if _points_to(link, folder):
            return slot
        ledger.record("claim", f"{link} -> {folder}")
        if _forget_dead(link) and slot_is_free(slot) and _take(link, folder):
            return slot
        ledger.forget("claim", f"{link} -> {folder}")
    raise NoCapacity(
        "drydock.full",
        f"This machine has {SLOTS} clusters, and room for no more.",
        hint="Remove one: neorion drydock down --name NAME.",
    )


def keep_slot(claims: Path, folder: Path, slot: int, ledger: UndoLog) -> None:
    """Claims the slot that a cluster already has, because the claims are lost when the machine restarts."""
    link = claims / str(slot)
    if _points_to(link, folder):
        return
    ledger.record("claim", f"{link} -> {folder}")
    if not (_forget_dead(link) and _take(link, folder)):
        ledger.forget("claim", f"{link} -> {folder}")
        raise Conflict(
            "drydock.slot_taken",
            f"Since this machine was restarted, another cluster has the addresses of {folder.name}: {link.readlink()}.",
            hint=f"Remove this one and create it again: neorion drydock down --name {folder.name}",
        )


def is_anothers(claims: Path, folder: Path, slot: int) -> bool:
    """True if another cluster has taken the slot of the one in `folder`."""
    link = claims / str(slot)
    return link.is_symlink() and not _points_to(link, folder)


def _points_to(link: Path, folder: Path) -> bool:
    return link.is_symlink() and link.readlink() == folder


def _forget_dead(link: Path) -> bool:
    """True if the slot may be taken: it is free, or its cluster was removed by hand."""
    # The link of another user stays, even if that user's home cannot be read.
    with suppress(PermissionError):
        if link.is_symlink() and not link.exists():
            link.unlink(missing_ok=True)
    return not link.is_symlink()


def _take(link: Path, folder: Path) -> bool:
    if not link.parent.exists():
        with suppress(FileExistsError):
            link.parent.mkdir()
            # Every user of the machine may add to it.
            link.parent.chmod(0o1777)
    try:
        link.symlink_to(folder)
    except FileExistsError:
        return False
    return True
