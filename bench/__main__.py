"""Runs the benchmarks named on the command line, or all: `python -m bench keel.store keel.rpc`."""

import importlib
import os
import platform
import sys
from pathlib import Path

from bench.kit import Report


def known() -> list[str]:
    here = Path(__file__).parent
    files = (
        path.relative_to(here).with_suffix("")
        for path in here.glob("*/*.py")
        # The peers are what others are compared with.
        if path.stem != "__init__" and path.parent.name != "peers"
    )
    return sorted(".".join(path.parts) for path in files)


def main(names: list[str]) -> int:
    wrong = [name for name in names if name not in known()]
    if wrong:
        print(f"no benchmark {', '.join(wrong)}; there are: {', '.join(known())}", file=sys.stderr)
        return 2
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name in names or known():
        print(f"\n{name}")
        importlib.import_module(f"bench.{name}").run(Report())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
