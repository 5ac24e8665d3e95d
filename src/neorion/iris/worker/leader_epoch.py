"""The highest epoch of a controller that this worker has obeyed. It is kept on the disk over restarts of the worker."""

from pathlib import Path

from neorion.iris.worker.identity import read_text, write_text
from neorion.keel.base import Retry
from neorion.keel.telemetry import logger

log = logger(__name__)


class LeaderEpoch:
    """Refuses controllers that were succeeded: an epoch below the highest one is not obeyed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        text = read_text(path)
        # A torn or foreign file is as good as none.
        self._highest = int(text) if text.isdecimal() else 0

    def follow(self, epoch: int) -> None:
        """Begins a session with the controller of this epoch."""
        if epoch < self._highest:
            raise Retry(
                "iris.old_epoch",
                f"The controller has epoch {epoch}, but one with epoch {self._highest} gave orders before.",
                hint="Stop the older controller, or start the worker with an empty folder if the database was created again.",
            )
        if epoch > self._highest:
            self._highest = epoch
            try:
                write_text(self._path, str(epoch))
            except OSError as error:
                # It stays in memory for this life of the worker.
                log.warning("the epoch of the controller was not written", why=error.strerror)

    def check(self, epoch: int) -> None:
        """Refuses an answer of any other controller than the one of the session."""
        if epoch > self._highest:
            raise Retry(
                "iris.new_leader",
                "Another controller leads now.",
                hint="Wait until the worker has joined it.",
            )
        self.follow(epoch)
