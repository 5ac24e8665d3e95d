"""The import contracts hold, and each of them catches a violation planted in a copy of the tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def lint(source: Path, cache: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            Path(sys.executable).parent / "lint-imports",
            "--config",
            ROOT / "pyproject.toml",
            "--cache-dir",
            cache,
        ],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_project_keeps_its_contracts(tmp_path: Path):
    done = lint(ROOT / "src", tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("neorion/keel/base/a.py", "from neorion.iris import model", "Products above their words"),
        ("neorion/iris/controllers.py", "import neorion.navarch", "Products above their words"),
        ("neorion/shelf.py", "", "Products above their words"),
        ("neorion/keel/clock/a.py", "import neorion.keel.run", "The rooms of keel"),
        ("neorion/keel/helpers.py", "", "The rooms of keel"),
        ("neorion/keel/base/a.py", "import time", "Foundation values and tables are pure"),
        ("neorion/iris/model.py", "import neorion.iris.controllers", "The same rooms in every system"),
        ("neorion/iris/state.py", "import neorion.iris.decide", "The same rooms in every system"),
        ("neorion/iris/helpers.py", "", "The same rooms in every system"),
        ("neorion/iris/decide/a.py", "import asyncio", "Deciding is pure"),
        ("neorion/iris/decide/a.py", "import neorion.keel.clock", "Deciding is pure"),
        ("neorion/stack.py", "import neorion.iris.controllers", "The umbrella sees"),
    ],
)
def test_a_planted_violation_is_caught(tmp_path: Path, module: str, line: str, contract: str):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("controllers", "decide", "model", "state"):
        (tmp_path / "src/neorion/iris" / room).mkdir(exist_ok=True)
        (tmp_path / "src/neorion/iris" / room / "__init__.py").touch()
    planted = tmp_path / "src" / module
    if planted.with_suffix("").is_dir():
        planted = planted.with_suffix("") / "planted.py"
    planted.write_text(line + "\n")
    done = lint(tmp_path / "src", tmp_path / "cache")
    broken = [text for text in done.stdout.splitlines() if text.endswith("BROKEN")]
    assert any(text.startswith(contract) for text in broken), done.stdout


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import iris.client", ["asyncio", "anyio", "protobuf", "msgspec"]),
        ("from iris.client import IrisClient, Args", ["protobuf", "msgspec", "httptools", "cloudpickle"]),
        (
            "from iris.client import IrisClient; IrisClient.remote('http://127.0.0.1:1').close()",
            ["connectrpc", "pyqwest", "aiohttp", "cloudpickle", "importlib.metadata"],
        ),
    ],
)
def test_a_client_loads_what_it_uses(code: str, absent: list[str]):
    check = f"{code}\nimport sys\nfound = [name for name in {absent!r} if name in sys.modules]\nassert not found, found"
    subprocess.run([sys.executable, "-c", check], check=True)
