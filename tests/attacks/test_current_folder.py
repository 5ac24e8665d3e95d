"""Files in the current folder are data: none of our programs imports them, whatever they are called."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.attack("current-folder"), pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
# Modules that our programs import: their own, of libraries, and of Python.
NAMES = ("click", "msgspec", "random", "queue", "neorion", "connectrpc", "re2", "cel_expr_python")
HOSTILE = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nraise SystemExit(3)\n"

LOCAL = """
from neorion.iris.client import IrisClient
with IrisClient.local(workers=1) as client:
    client.wait(client.submit("true", "job"), timeout=60)
print("done")
"""
JUDGE = """
import anyio
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.policy_engine import SubprocessPolicyEngine
async def main():
    async with SubprocessPolicyEngine({"default": default_policy()}) as engine:
        await engine.evaluate("default", [{"event": {}}])
anyio.run(main)
print("done")
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(HOSTILE)
    return folder


def ran(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.ran"))


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(Path(sys.executable).parent), "HOME": str(folder.parent)}
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=150, check=False
    )


@pytest.mark.parametrize("program", [LOCAL, JUDGE], ids=["local cluster", "policies"])
def test_a_program_started_in_a_hostile_folder_runs_none_of_it(hostile: Path, program: str) -> None:
    done = run(hostile, sys.executable, "-P", "-c", program)
    assert ran(hostile) == []
    assert done.stdout == "done\n", done.stderr


def test_a_detached_cluster_started_in_a_hostile_folder_runs_none_of_it(hostile: Path) -> None:
    iris = str(Path(sys.executable).with_name("iris"))
    state = str(hostile.parent / "state")
    try:
        done = run(hostile, iris, "cluster", "start", "--local", "--detach", "--port", "0", "--folder", state)
        assert ran(hostile) == []
        assert done.returncode == 0, done.stderr
    finally:
        run(hostile, iris, "cluster", "stop", "--folder", state)


def test_without_the_option_the_folder_is_imported(hostile: Path) -> None:
    run(hostile, sys.executable, "-m", "neorion.iris", "--help")
    assert ran(hostile) != []


def module_starts(path: Path) -> Iterator[tuple[int, bool]]:
    """Each argument list that starts a module by this Python: its line, and whether it is safe."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.List | ast.Tuple):
            words = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            if "-m" in words and not ({"list", "numpy"} & set(words)):
                yield node.lineno, words[words.index("-m") - 1] == "-P"


def test_every_start_of_a_module_has_the_option() -> None:
    found = [
        (str(path.relative_to(ROOT)), line, safe)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, safe in module_starts(path)
    ]
    assert len(found) >= 8
    assert [one for one in found if not one[2]] == []
