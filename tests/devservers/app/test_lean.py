"""What the operator's process does not load: each of these would stay in its memory for as long as it lives."""

import subprocess
import sys

_LOADED = """
import sys
import neorion.devservers.app.main
import neorion.keel.rpc.listener
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import AsgiApp, serve
AsgiApp([], [], ids=SystemIds())
print(*sys.modules)
"""
UNWANTED = {
    "pydantic",
    "pydantic_core",
    "rich",
    "connectrpc",
    "protobuf",
    "cryptography",
    "asyncssh",
    "boto3",
}


def test_the_operator_loads_no_reader_of_files_no_services_no_colours_and_no_maker_of_keys() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & UNWANTED == set()
