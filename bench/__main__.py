"""Runs the benchmarks named on the command line, or all: `python -m bench keel.store kube`, the second of which is a folder."""

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
        # Others are what benchmarks are made of.
        if "\ndef run(report: Report)" in path.read_text(encoding="utf-8")
    )
    return sorted(".".join(path.parts) for path in files)


def main(names: list[str]) -> int:
    meant = {name: [one for one in known() if f"{one}.".startswith(f"{name}.")] for name in names}
    wrong = [name for name, found in meant.items() if not found]
    if wrong:
        print(f"no benchmark {', '.join(wrong)}; there are: {', '.join(known())}", file=sys.stderr)
        return 2
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name in [one for found in meant.values() for one in found] or known():
        print(f"\n{name}")
        importlib.import_module(f"bench.{name}").run(Report())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
