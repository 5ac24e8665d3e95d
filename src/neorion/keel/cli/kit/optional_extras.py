"""Optional packages: which of them are missing, and the command that installs them."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

from neorion.keel.base import Terminal

_DISTRIBUTION: Final = __name__.partition(".")[0]
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+).*;.*extra == ['\"]([A-Za-z0-9._-]+)['\"]")
# Packages whose module has another name. The module of any other package is its name with underscores.
_MODULES: Final = {
    "common-expression-language": "cel",
    "google-cloud-compute": "google",
    "google-re2": "re2",
    "grpcio": "grpc",
    "nvidia-ml-py": "pynvml",
    "pyjwt": "jwt",
}


def extras() -> dict[str, list[str]]:
    """The extras this distribution declares, and the packages of each; none for bare sources, as in an image."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 -- costs as much as click, and few commands need it

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


def module_of(package: str) -> str:
    """The top-level module that a package of an extra brings."""
    return _MODULES.get(package, package.replace("-", "_"))


def install_command(*names: str) -> str:
    """The command that adds extras to this installation, from where the installation came."""
    wanted = f"[{','.join(names)}]"
    match _origin():
        case {"dir_info": {"editable": True}, "url": str(url)}:
            source = f"--editable '{unquote(urlparse(url).path)}{wanted}'"
        case {"url": str(url)}:
            source = f"'{_DISTRIBUTION}{wanted} @ {url}'"
        case _:
            source = f"'{_DISTRIBUTION}{wanted}'"
    # uvx runs a program in an environment of its cache, which nothing can be added to.
    if "archive-v0" in Path(sys.prefix).parts:
        return f"uvx --from {source} {shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])}"
    return f"pip install {source}"


def _origin() -> dict[str, Any]:
    """Where this distribution was installed from, unless it was an index (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 -- see above

    try:
        return json.loads(distribution(_DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return {}


def require_extra(*names: str) -> None:
    """Call it before importing what the extras bring, with all that the command needs."""
    missing = {package: None for extra in names for package in missing_packages(extra)}
    if missing:
        raise _not_installed([*missing], *names)


def missing_extra(error: ModuleNotFoundError) -> Terminal | None:
    """The error to show instead, if the module is one that an extra brings."""
    module = (error.name or "").partition(".")[0]
    wanted = [
        extra for extra, packages in extras().items() if module in {module_of(name) for name in packages}
    ]
    if not wanted:
        return None
    # Several extras may bring it: the one named like a package of the importer is the one it needs.
    importer = _importer(error).split(".")
    extra = next((extra for extra in wanted if extra in importer), wanted[-1])
    return _not_installed(missing_packages(extra) or [module], extra)


def _importer(error: ModuleNotFoundError) -> str:
    """The last module of ours that was at work."""
    name, trace = "", error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        name = module if module.partition(".")[0] == _DISTRIBUTION else name
        trace = trace.tb_next
    return name


def _not_installed(packages: list[str], *names: str) -> Terminal:
    return Terminal(
        "cli.missing_extra",
        f"This needs packages that are not installed: {', '.join(packages)}.",
        hint=f"Install them: {install_command(*names)}",
    )
