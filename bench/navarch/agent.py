"""What the agent costs its machine, at the usual intervals, with eight GPUs that are a stand-in; and how soon a fault is heard.

The stand-in reads its facts from a file at each question, so the processor time is above that of a real library.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.kit import Report
from bench.process import cpu_s, peak_mb
from tests.navarch.nvml.stand_in import Machine, build

# Two heartbeats and a look lie in it.
WINDOW_S = 60.0
CONFIG = """
server: { address: "127.0.0.1:0", state_dir: state }
providers: { fake: {} }
pools:
  - { name: training, provider: fake, instance_type: p5.48xlarge, adopt: true, max_nodes: 2 }
"""
PROGRAM = [sys.executable, "-m", "neorion.navarch"]


@contextmanager
def process(folder: Path, *args: str, **env: str) -> Generator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [*PROGRAM, *args, "--log", "json"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "NAVARCH_AUTH_TOKEN": "token", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    while words not in (line := process.stderr.readline()):
        assert line, f"it ended before it said: {words}"


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(CONFIG)
        (folder / "one").mkdir()
        machine, library = Machine(folder / "one"), build(folder)
        with process(folder, "serve", "--config", "config.yaml") as serve:
            assert serve.stdout is not None
            address = serve.stdout.readline().strip()
            args = ["agent", "--server", address, "--node-id", "one", "--pool", "training"]
            args += ["--state", "state-of-agent", "--kernel-log", "one/kmsg"]
            seen = {"LD_LIBRARY_PATH": str(library.parent), "NVML_STAND_IN": str(machine.folder)}
            with process(folder, *args, **seen) as agent:
                until(agent, "registered")
                _measure(report, machine, serve, agent.pid)
        machine.close()


def _measure(report: Report, machine: Machine, serve: subprocess.Popen[str], agent: int) -> None:
    def core_percent() -> float:
        began, spent = time.monotonic(), cpu_s(agent)
        time.sleep(WINDOW_S)
        return 100 * (cpu_s(agent) - spent) / (time.monotonic() - began)

    codes = iter(range(1_000, 2_000))

    def heard_ms() -> float:
        # Each time another code: what is seen again within moments is the same fault.
        code = next(codes)
        began = time.monotonic()
        machine.xid(3, code)
        until(serve, f"xid {code}")
        return 1_000 * (time.monotonic() - began)

    report.compare("an agent at rest", "% of a core", core_percent, ("the limit", lambda: 1.0), rounds=3)
    report.alone("fault in the driver → judged", "ms", heard_ms, rounds=20)
    report.compare(
        "an agent's memory at its most",
        "MB",
        lambda: peak_mb(agent),
        ("the limit", lambda: 64.0),
        rounds=1,
    )
