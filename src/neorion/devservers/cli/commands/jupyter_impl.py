"""JupyterLab inside a server, behind a token and a port of this machine."""

import webbrowser
from typing import Final, TypedDict, Unpack

import anyio

from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.client import DevServerApi, exec_run, port_forward
from neorion.keel.base import NotFound, Terminal
from neorion.keel.cli.kit import Output

_NO_PROGRAM: Final = 69
# Prints the token of a JupyterLab that listens. One that runs already is used again.
_START: Final = """
umask 077
port=$1 folder=$HOME/.devserver
mkdir -p "$folder"
[ -s "$folder/jupyter-token" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \\n' >"$folder/jupyter-token"
listens() { grep -q ":$(printf %04X "$port") 00000000:0000 0A" /proc/net/tcp; }
if ! listens; then
  command -v jupyter >/dev/null 2>&1 || exit 69
  JUPYTER_TOKEN=$(cat "$folder/jupyter-token") nohup jupyter lab --no-browser --allow-root --ip 127.0.0.1 \\
    --port "$port" --ServerApp.port_retries=0 >"$folder/jupyter.log" 2>&1 </dev/null &
  tries=0
  until listens; do
    tries=$((tries + 1))
    if [ $tries -gt 240 ] || ! kill -0 $! 2>/dev/null; then tail -n 3 "$folder/jupyter.log" >&2; exit 70; fi
    sleep 0.25
  done
fi
cat "$folder/jupyter-token"
"""


class JupyterOptions(TypedDict):
    """Options of `devctl jupyter`."""

    port: int
    local: int
    browser: bool
    rank: int | None


async def jupyter(fleet: DevServerApi, out: Output, name: str, how: JupyterOptions) -> None:
    """Leads a local port to it until Ctrl-C."""
    port, local = how["port"], how["local"]
    token = await _start(fleet, name, port)
    async with port_forward(fleet, name, port, ("127.0.0.1", local)) as got:
        url = f"http://127.0.0.1:{got}/lab?token={token}"
        out.text(f"{url}\n")
        if how["browser"]:
            webbrowser.open(url)
        await anyio.sleep_forever()


async def _start(fleet: DevServerApi, name: str, port: int) -> str:
    done = await exec_run(fleet, name, ("/bin/sh", "-c", _START, "sh", str(port)))
    if done.code == _NO_PROGRAM:
        raise NotFound(
            "devservers.no_jupyter",
            f"The image of {name} has no jupyter.",
            hint=f"Install it: devctl exec {name} -- pip install jupyterlab.",
        )
    if done.code:
        said = done.stderr.decode(errors="replace").strip()
        raise Terminal(
            "devservers.jupyter_failed",
            f"JupyterLab did not start in {name}: {said or f'exit code {done.code}'}",
            hint=f"Read its log: devctl exec {name} -- cat .devserver/jupyter.log.",
        )
    return done.stdout.decode().strip()


def jupyter_command(out: Output, name: str, where: ClusterSelector, **how: Unpack[JupyterOptions]) -> None:
    run_with_api(out, where, lambda fleet: jupyter(fleet.at_rank(how["rank"]), out, name, how))
