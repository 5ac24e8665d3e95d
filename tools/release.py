"""Checks that a tag is the version of this checkout, and prints what CHANGELOG.md says about it. Standard library only."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(tag: str, root: Path = ROOT) -> int:
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    notes = notes_of(version, (root / "CHANGELOG.md").read_text())
    if tag != f"v{version}":
        print(f"release: the tag {tag} is not v{version}, the version in pyproject.toml.", file=sys.stderr)
        return 1
    if not notes:
        print(f'release: CHANGELOG.md has no section "## {version}".', file=sys.stderr)
        return 1
    print(notes)
    return 0


def notes_of(version: str, changelog: str) -> str:
    """The section of a version, without its heading."""
    found = re.search(rf"^## {re.escape(version)}\b.*\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    return found[1].strip() if found else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
