"""The program `devctl`."""

import gc
import os

# Objects made and not yet gone. A command that stays, as `monitor` does, passes it now and then.
_GARBAGE_AFTER = 50_000


def main() -> None:
    # Modules make many objects that stay: looking through them for garbage takes a tenth of a short command's time.
    gc.set_threshold(_GARBAGE_AFTER)
    from neorion.devservers.cli import app  # noqa: PLC0415 -- loaded without looking for garbage
    from neorion.keel.cli import run  # noqa: PLC0415 -- as above

    # At once: nothing that still waits for the network or the keyboard may hold up the shell.
    os._exit(run(app))
