"""Writes what is made from other files: code from `.proto` files, the list of error codes, the diagrams of states, custom resource definitions. `--check` writes nothing and fails on what is stale.

A step says which files it owns and what they should hold; comparing, writing and deleting are the same for all.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from neorion.devservers.adapters.install import Overlay
from neorion.devservers.decide.tenant import tenant_manifests
from neorion.devservers.model import (
    DEV_SERVER,
    DEV_SERVER_FLAVOR,
    DEV_SERVER_LOGIN_POLICY,
    DEV_SERVER_SESSION,
    DEV_SERVER_USER,
    DEV_SERVER_USER_REQUEST,
)
from neorion.devservers.model.user import DevServerUserSpec
from neorion.drydock.binaries import ready
from neorion.drydock.clusters import ClusterManager
from neorion.iris.client.result import end_meanings
from neorion.iris.model import ATTEMPT, JOB, SLICE, TASK, WORKER
from neorion.iris.model.pending_reason import wait_meanings
from neorion.navarch.model import NODE, PURCHASE, REPAIR
from tools import attacks
from tools.error_codes import raised_in

ROOT = Path(__file__).resolve().parent.parent
# Where packages with a `proto` folder may lie. The path below a source root is the import path.
SOURCES = (ROOT / "src", ROOT)
SEARCHED = ("src", "tests", "bench")


@dataclass(frozen=True, slots=True)
class Made:
    """What a step owns: the content each file should have, and the files that are there now."""

    wanted: dict[Path, bytes]
    present: set[Path]


def protos() -> Made:
    """`<package>/proto/*.proto` → `<package>/gen/*_pb.py`, `*_connect.py` and `*_client.py`.

    To protoc a file in `src/neorion/iris/proto` is called `neorion/iris/gen/….proto`: its own name tells the
    module it becomes, and one package imports another's messages by that name.
    """
    folders = sorted(path for top in SEARCHED for path in (ROOT / top).rglob("proto") if path.is_dir())
    gens = {folder: _import_path(folder.with_name("gen")) for folder in folders}
    names = [f"{gens[folder]}/{file.name}" for folder in folders for file in sorted(folder.glob("*.proto"))]
    with tempfile.TemporaryDirectory() as made:
        tools = Path(sys.executable).parent
        ours = Path(made) / "protoc-gen-client"
        ours.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT / 'tools/client_plugin.py'}\n")
        ours.chmod(0o755)
        plugins = {name: tools / f"protoc-gen-{name}" for name in ("py", "connectrpc")} | {"client": ours}
        command = [tools / "protoc", *(f"-I{gen}={folder}" for folder, gen in gens.items())]
        for name, plugin in plugins.items():
            command += [f"--plugin=protoc-gen-{name}={plugin}", f"--{name}_out={made}"]
        subprocess.run([*command, *names], check=True)
        wanted = {
            folder.with_name("gen") / file.name: file.read_bytes()
            for folder, gen in gens.items()
            for file in sorted((Path(made) / gen).glob("*.py"))
        }
    present = {file for folder in folders for file in folder.with_name("gen").glob("*.py")}
    return Made(wanted, present)


def _import_path(folder: Path) -> str:
    source = next(source for source in SOURCES if folder.is_relative_to(source))
    return folder.relative_to(source).as_posix()


def errors() -> Made:
    """Every error code in the source → a page for people, and the data behind `neorion explain`."""
    page, data = ROOT / "docs/reference/errors.md", ROOT / "src/neorion/cli/codes.json"
    raised = [one for one in raised_in(ROOT / "src/neorion") if one.sentence]
    rows = [f"| `{one.code}` | {one.family} | {_cell(one.sentence)} | {_cell(one.hint)} |" for one in raised]
    codes = {one.code: {"family": one.family, "meaning": one.sentence} for one in raised}
    codes |= {code: {"family": "invalid", "meaning": text} for code, text in _WORDED_ELSEWHERE.items()}
    codes |= {
        f"iris.{cause}": {"family": "terminal", "meaning": text} for cause, text in end_meanings().items()
    }
    # The codes of `iris why` and of jobs that have ended belong to no family.
    codes |= {
        code: {"family": "", "meaning": text} for code, text in (wait_meanings() | end_meanings()).items()
    }
    wanted = {
        page: (_ERRORS_HEAD + "\n".join(rows) + "\n").encode(),
        data: (json.dumps(codes, indent=1, ensure_ascii=False) + "\n").encode(),
    }
    return Made(wanted, {path for path in wanted if path.exists()})


# Errors whose sentences are made from other values.
_WORDED_ELSEWHERE = {
    "cli.usage": "The command line is not valid. The sentence names the argument.",
    "iris.infeasible": "No worker and no scale group could ever run the job. The sentence says what is missing.",
}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


_ERRORS_HEAD = """# Errors

Every error has a stable code, a family that says what to do next, one sentence and a hint. `neorion explain CODE` says the
same on a terminal. The families, with exit codes and HTTP statuses, are in the guide to the command line.
What stands in ‹angle quotes› is filled in.

| code | family | sentence | hint |
|---|---|---|---|
"""


def states() -> Made:
    """The transition tables → a page of diagrams."""
    page = ROOT / "docs/reference/states.md"
    drawn = [
        f"## {table.name}\n\n```mermaid\n{table.diagram()}```\n"
        for table in (JOB, TASK, ATTEMPT, WORKER, SLICE, NODE, PURCHASE, REPAIR)
    ]
    return Made({page: (_STATES_HEAD + "\n".join(drawn)).encode()}, {page} if page.exists() else set())


_STATES_HEAD = """# States

What the things of iris and navarch go through, and what each move means. Any other move is a defect, and is refused with the thing's story.

"""


def resources() -> Made:
    """The types of custom resources → the definitions a cluster is given."""
    folder = ROOT / "infra/devservers/crds"
    wanted = {
        folder / f"{one.plural}.yaml": yaml.safe_dump(one.manifest(), sort_keys=False, width=110).encode()
        for one in (
            DEV_SERVER,
            DEV_SERVER_FLAVOR,
            DEV_SERVER_LOGIN_POLICY,
            DEV_SERVER_SESSION,
            DEV_SERVER_USER,
            DEV_SERVER_USER_REQUEST,
        )
    }
    return Made(wanted, set(folder.glob("*.yaml")))


def installations() -> Made:
    """The overlays of `infra/devservers` → the manifests that `devctl install` carries.

    They are rendered by the kubectl of real clusters. Where that is not built yet, what is there is left as it is.
    """
    folder = ROOT / "src/neorion/devservers/adapters/install/manifests"
    present = set(folder.glob("*.yaml"))
    if not ready("kubectl"):
        return Made({}, set())
    kubectl = ClusterManager.of().shelf.path("kubectl")
    wanted = {
        folder / f"{overlay.value}.yaml": subprocess.run(
            [kubectl, "kustomize", ROOT / "infra/devservers" / overlay.value],
            check=True,
            capture_output=True,
        ).stdout
        for overlay in Overlay
    }
    return Made(wanted, present)


def users() -> Made:
    """What the user controller makes for `devctl admin user add ann`, for who would rather read it, or keep it in a repository."""
    file = ROOT / "infra/devservers/user/ann.yaml"
    text = yaml.safe_dump_all(tenant_manifests("ann", DevServerUserSpec()), sort_keys=False, width=110)
    return Made({file: (_USER_HEAD + text).encode()}, set(file.parent.glob("*.yaml")))


_USER_HEAD = """# What the user controller makes for a user, here one called ann. Written by make generate.
"""


def security() -> Made:
    """The lists of attacks and faults, and the markers of tests → two pages of tables."""
    found = {
        ROOT / f"docs/reference/{catalog.marker}s.md": head
        + attacks.page(attacks.entries(ROOT, catalog), catalog)
        for catalog, head in ((attacks.ATTACKS, _ATTACKS_HEAD), (attacks.FAULTS, _FAULTS_HEAD))
    }
    return Made(
        {page: text.encode() for page, text in found.items()}, {page for page in found if page.exists()}
    )


_ATTACKS_HEAD = """# Attacks

Known attacks, the guard against each, and the tests that carry it out. The page is generated from the markers of the tests
and from `tests/attacks/attacks.yaml`. Who is trusted with what is described in [Security](../security.md). A number is the
row of the list that the project was planned with; attacks without one were added later.

"""

_FAULTS_HEAD = """# Faults

Known faults, what is expected, and the tests that inject them. The page is generated from the markers of the tests and from
`tests/attacks/faults.yaml`.

"""

STEPS: dict[str, Callable[[], Made]] = {
    "protos": protos,
    "errors": errors,
    "states": states,
    "resources": resources,
    # After the definitions, which are part of it.
    "installations": installations,
    "users": users,
    "security": security,
}


def stale(made: Made) -> list[Path]:
    changed = (path for path, text in made.wanted.items() if not path.exists() or path.read_bytes() != text)
    return sorted([*changed, *(made.present - made.wanted.keys())])


def write(made: Made) -> None:
    for path in stale(made):
        if path in made.wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made.wanted[path])
        else:
            path.unlink()


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    found = False
    for name, step in STEPS.items():
        made = step()
        for path in stale(made):
            found = True
            print(f"{name}: {'stale' if arguments else 'wrote'} {path.relative_to(ROOT)}")
        if not arguments:
            write(made)
    if found and arguments:
        print("hint: make generate")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
