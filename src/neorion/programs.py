"""The programs: what stands behind each name in the shell. Loads nothing but what Ctrl-C needs."""

import signal


def devctl() -> None:
    _quiet_until_it_runs()
    from neorion.devservers.devctl import main  # noqa: PLC0415 -- loaded when Ctrl-C is quiet

    main()


def iris() -> None:
    _quiet_until_it_runs()
    from neorion.iris.cli import main  # noqa: PLC0415 -- as above

    main()


def navarch() -> None:
    _quiet_until_it_runs()
    from neorion.navarch.cli import main  # noqa: PLC0415 -- as above

    main()


def neorion() -> None:
    _quiet_until_it_runs()
    from neorion.cli import main  # noqa: PLC0415 -- as above

    main()


def _quiet_until_it_runs() -> None:
    """Python would show where in our modules it was interrupted. `keel.cli.run` takes Ctrl-C back for the command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
