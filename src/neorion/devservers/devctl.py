"""The program `devctl`."""

import gc
import os
import signal

# Objects made and not yet gone. A command that stays, as `monitor` does, passes it now and then.
_GARBAGE_AFTER = 50_000


def main() -> None:
    # While it loads there is nothing to clean up: Ctrl-C ends it as it ends any program, without a word about modules.
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Modules make many objects that stay: looking through them for garbage takes a tenth of a short command's time.
    gc.set_threshold(_GARBAGE_AFTER)
    from neorion.devservers.cli import app  # noqa: PLC0415 -- loaded without looking for garbage
    from neorion.keel.cli import run  # noqa: PLC0415 -- as above

    signal.signal(signal.SIGINT, interrupted)
    # At once: nothing that still waits for the network or the keyboard may hold up the shell.
    os._exit(run(app))
