"""Code blocks of Markdown pages, and how to run a page's blocks in one empty folder.

A block without a mark runs. A mark is an HTML comment on the line above the block:

- `needs: cluster` and the like: not run here. Its syntax is checked.
- `run: COMMAND`: the block is a file, and the command gets its name.
- `file: NAME`: the block is a file that later blocks use.
- `fragment`: a part of a file. Its syntax is checked.
"""

import ast
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

NEEDS: Final = {
    "checkout": "a clone of the project",
    "cluster": "a cluster, or images for one",
    "minutes": "more time than a test has",
    "server": "a program that runs until it is stopped",
}
LANGUAGES: Final = ("mermaid", "python", "sh", "text", "yaml")
_BLOCK: Final = re.compile(r"^(?:<!-- ([a-z]+)(?:: (.+?))? -->\n)?```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
# Variables that would lead a reader to another installation or cluster.
_OWN: Final = ("IRIS_", "KUBECONFIG", "NAVARCH_", "NEORION_", "PYTHON", "VIRTUAL_")
# A page may define tests, as a guide to testing does: they run too.
_RUN_PYTHON: Final = """
import runpy, sys
names = runpy.run_path(sys.argv[1], run_name="__main__")
for name, value in names.items():
    if name.startswith("test_"):
        value()
"""


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: its page, first line, language and mark."""

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    value: str = ""

    @property
    def runs(self) -> bool:
        return self.mark in {"", "run"} and self.language not in {"mermaid", "text"}

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, text.count("\n", 0, found.start(4)) + 1, language, code, mark or "", value or "")
        for found in _BLOCK.finditer(text)
        for mark, value, language, code in [found.groups()]
    ]


def mistakes(block: Block) -> list[str]:
    """What is wrong with a block before it runs."""
    found: list[str] = []
    if block.language not in LANGUAGES:
        found.append(f'{block.place}: the language is "{block.language}", not one of {", ".join(LANGUAGES)}')
    if block.mark not in {"", "needs", "run", "file", "fragment"} or (
        block.mark == "needs" and block.value not in NEEDS
    ):
        found.append(f'{block.place}: "{block.mark}: {block.value}" is not a valid mark')
    if block.language == "yaml" and not block.mark:
        found.append(f"{block.place}: YAML needs a mark, e.g. run: navarch validate")
    return found or _syntax(block)


def _syntax(block: Block) -> list[str]:
    try:
        if block.language == "python":
            compile(block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif block.language == "yaml":
            list(yaml.safe_load_all(block.text))
        elif block.language == "sh":
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True, capture_output=True)
    except (SyntaxError, yaml.YAMLError, subprocess.CalledProcessError) as error:
        return [f"{block.place}: {getattr(error, 'stderr', None) or error}"]
    return []


class Reader:
    """A terminal in an empty folder, which is also the home, with one installation on PATH."""

    def __init__(self, folder: Path, bin_folder: Path | None = None, **variables: str) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        self._env = kept | {
            "HOME": str(folder),
            "PATH": os.pathsep.join([str(bin_folder or Path(sys.executable).parent), os.environ["PATH"]]),
            # Several readers may be at work, each with its own cluster.
            "IRIS_PORT": port,
            "IRIS_CONTROLLER": f"http://127.0.0.1:{port}",
            "XDG_STATE_HOME": str(folder / ".state"),
            **variables,
        }

    def follow(self, blocks: Sequence[Block]) -> None:
        """Runs the blocks of a page that can run here, in one shell, up to the first that fails."""
        for block in blocks:
            if block.mark == "file":
                (self._folder / block.value).write_text(block.text)
        # What a page starts, it stops. A failure does not leave it behind either.
        script = "trap 'iris cluster stop >/dev/null 2>&1 || true' EXIT\n"
        script += "".join(f"echo '>>> {block.place}'\n{self._lines(block)}" for block in blocks if block.runs)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"The page failed with {done.returncode}:\n{done.stdout}"

    def _lines(self, block: Block) -> str:
        if block.language == "sh":
            return block.text
        suffix = "py" if block.language == "python" else block.language
        name = f"block-{block.line}.{suffix}"
        (self._folder / name).write_text(block.text)
        run = block.value if block.mark == "run" else f"python -c {shlex.quote(_RUN_PYTHON)}"
        return f"{run} {name}\n"
