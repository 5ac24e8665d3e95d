"""The work of `neorion drydock status`, `logs` and `url`."""

import anyio

from neorion.drydock.addons import url_of
from neorion.drydock.cli.tables import STATUS
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.status import status_of
from neorion.keel.base import NotFound, did_you_mean
from neorion.keel.cli.kit import Output


def status_command(out: Output, name: str | None) -> None:
    manager = ClusterManager.of(out.env)
    if name is not None:
        out.show_one(anyio.run(status_of, manager.find(name)), STATUS)
    else:
        out.show([anyio.run(status_of, each) for each in manager.clusters()], STATUS)


def logs_command(out: Output, part: str, name: str) -> None:
    layout = ClusterManager.of(out.env).find(name).layout
    logs = {path.stem: path for path in layout.logs.glob("*.log")}
    logs |= {f"{path.parents[1].name}/{path.stem}": path for path in layout.folder.glob("nodes/*/log/*.log")}
    if part not in logs:
        raise NotFound(
            "drydock.no_part", f'"{part}" has said nothing in cluster {name}.', hint=did_you_mean(part, logs)
        )
    with logs[part].open(errors="replace") as lines:
        for line in lines:
            out.text(line)


def url_command(out: Output, part: str, name: str) -> None:
    out.text(f"{url_of(ClusterManager.of(out.env).find(name), part)}\n")
