"""A real PostgreSQL server in a temporary directory, for tests and benchmarks. It dies with its starter."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from tools import system
from tools.leftovers import temporary_folder_prefix

# PostgreSQL refuses to run as root.
_UNPRIVILEGED = "nobody"
_PASSWORD = "of-the-tests"


class PostgresServer:
    """One cluster, and a fresh schema for whoever asks. Clients of this machine need no password; `network` needs one."""

    def __init__(self, home: Path, host: str = "127.0.0.1", network: str = "") -> None:
        self._home = home
        self._host = host
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind((host, 0))
            self._port = int(probe.getsockname()[1])
        self._url = f"postgresql://neorion:{_PASSWORD}@{host}:{self._port}/postgres"
        if os.geteuid() == 0:
            shutil.chown(home, _UNPRIVILEGED)
        self._run(
            "initdb",
            "-D",
            str(home / "data"),
            "-A",
            "trust",
            "-U",
            "neorion",
            "-E",
            "UTF8",
            "-k",
            "--no-sync",
        )
        with (home / "data/pg_hba.conf").open("a") as rules:
            rules.writelines(
                f"host all all {each} scram-sha-256\n" for each in (f"{host}/32", network) if each
            )

    def start(self) -> None:
        """Returns once the server accepts connections."""
        options = {"port": self._port, "unix_socket_directories": self._home, "listen_addresses": self._host}
        command = [_program("postgres"), "-D", str(self._home / "data")]
        for name, value in {**options, "fsync": "on", "shared_buffers": "16MB"}.items():
            command += ["-c", f"{name}={value}"]
        with (self._home / "log").open("ab") as log:
            # SIGINT to a postmaster is its fast shutdown: also when the starter is killed.
            self._process = subprocess.Popen(
                [*_as_unprivileged("--pdeathsig", "INT"), *command], stdout=log, stderr=log
            )
        ready = [_program("pg_isready"), "-h", self._host, "-p", str(self._port), "-t", "1"]
        while subprocess.run(ready, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            if self._process.poll() is not None:
                raise RuntimeError((self._home / "log").read_text()[-2000:])
        with psycopg.connect(
            host=str(self._home), port=self._port, user="neorion", dbname="postgres"
        ) as admin:
            admin.execute(sql.SQL("ALTER USER neorion PASSWORD {}").format(_PASSWORD))

    def stop(self, how: signal.Signals) -> None:
        """SIGQUIT is an immediate shutdown (`pg_ctl -m immediate`), which is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def new_schema(self) -> str:
        """The address of an empty schema: cheaper than a database, and as separate."""
        name = f"store{next(self._numbers)}"
        with psycopg.connect(self._url) as admin:
            admin.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{self._url}?options=-csearch_path%3D{name}"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*_as_unprivileged(), _program(program), *arguments],
            capture_output=True,
            text=True,
            cwd=self._home,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)


@contextmanager
def postgres_server(host: str = "127.0.0.1", network: str = "") -> Generator[PostgresServer]:
    # Not pytest's own directory: that one is closed to the user the server runs as.
    with tempfile.TemporaryDirectory(prefix=temporary_folder_prefix()) as home:
        server = PostgresServer(Path(home), host, network)
        try:
            server.start()
            yield server
        finally:
            # What is about to be thrown away need not be tidy.
            server.stop(signal.SIGQUIT)


def _program(name: str) -> str:
    found = system.find(name)
    if found is None:
        raise FileNotFoundError(name)
    return found


def _as_unprivileged(*options: str) -> list[str]:
    user = ["--reuid", _UNPRIVILEGED, "--regid", "nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", *user, *options] if user or options else []
