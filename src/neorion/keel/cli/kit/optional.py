"""Optional packages: which of them are missing, and the command that installs them."""

import re
from typing import Final

from neorion.keel.base import Terminal

_DISTRIBUTION: Final = __name__.partition(".")[0]
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+).*;.*extra == ['\"]([A-Za-z0-9._-]+)['\"]")


def extras() -> dict[str, list[str]]:
    """The extras this distribution declares, and the packages of each; none for bare sources, as in an image."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 -- costs as much as click; few commands ask

    try:
        declared = requires(_DISTRIBUTION) or ()
    except PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {}
    for line in declared:
        match = _REQUIREMENT.fullmatch(line)
        if match is not None:
            found.setdefault(match[2], []).append(match[1])
    return found


def missing_packages(extra: str) -> list[str]:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 -- see above

    def is_missing(package: str) -> bool:
        try:
            version(package)
        except PackageNotFoundError:
            return True
        return False

    return [package for package in extras().get(extra, ()) if is_missing(package)]


def install_command(extra: str) -> str:
    return f"pip install '{_DISTRIBUTION}[{extra}]'"


def require_extra(extra: str) -> None:
    """Call it before importing what the extra brings."""
    missing = missing_packages(extra)
    if missing:
        raise Terminal(
            "cli.missing_extra",
            f"This command needs packages that are not installed: {', '.join(missing)}.",
            hint=f"Install them: {install_command(extra)}",
        )
