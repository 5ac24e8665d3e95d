"""Commands that change servers."""

from pathlib import Path
from typing import TypedDict, Unpack

from msgspec import Struct

from neorion.devservers.cli.humanize import clock_text
from neorion.devservers.cli.options import (
    ClusterSelector,
)
from neorion.devservers.cli.progress import ProgressPrinter
from neorion.devservers.cli.session import parse_timeout, run_with_api
from neorion.devservers.cli.tables import ServerRecord, servers_table
from neorion.devservers.client import (
    CreateRequest,
    DevServerApi,
    DistributedRequest,
    extended,
    parse_span,
    placed_after,
    plan_move,
    until_stopped,
    wait_deleted,
    wait_ready,
)
from neorion.devservers.model.kube_types import DEVSERVERS, DevServerObject
from neorion.keel.base import Invalid
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Output, confirm
from neorion.keel.cli.kit.serialize import as_json, as_yaml, plain


class CreateOptions(TypedDict):
    """Options of `devctl create`."""

    flavor: str
    image: str
    home_size: str
    time: str
    shared_volume: str
    ssh_key: tuple[Path, ...]
    distributed: bool
    replicas: int | None
    nproc_per_node: int | None
    min_replicas: int | None
    backend: str
    shared_home: bool
    wait: bool
    timeout: str
    dry_run: bool


class ChangeOptions(TypedDict):
    """Options of commands that stop, change or delete a server."""

    wait: bool
    timeout: str
    yes: bool
    dry_run: bool


class ExtendOptions(Struct, frozen=True):
    """Options of `devctl extend`."""

    time: str
    shorten: bool
    dry_run: bool


def create_request(name: str, short: str, asked: CreateOptions) -> CreateRequest:
    """Request for a new server from the arguments and options of `create`."""
    if short and asked["flavor"] and short != asked["flavor"]:
        raise Invalid(
            "devservers.two_flavors",
            f'Two flavors are named, "{short}" and "{asked["flavor"]}".',
            hint=f"Name one: devctl create {name} --flavor {asked['flavor']}",
        )
    return CreateRequest(
        name=name,
        flavor=short or asked["flavor"],
        image=asked["image"],
        home_size=asked["home_size"],
        time=asked["time"],
        shared_volume=asked["shared_volume"],
        ssh_keys=tuple(path.read_text(errors="replace").strip() for path in asked["ssh_key"]),
        distributed=_distributed_request(asked),
    )


def _distributed_request(asked: CreateOptions) -> DistributedRequest | None:
    given = {
        "--replicas": asked["replicas"],
        "--nproc-per-node": asked["nproc_per_node"],
        "--min-replicas": asked["min_replicas"],
        "--backend": asked["backend"],
        "--shared-home": asked["shared_home"],
    }
    extra = next((option for option, value in given.items() if value), "")
    if not asked["distributed"] and extra:
        raise Invalid(
            "devservers.replicas",
            f"{extra} is for servers of several machines.",
            hint=f"Add --distributed, or leave {extra} out.",
        )
    if not asked["distributed"]:
        return None
    return DistributedRequest(
        replicas=asked["replicas"] or 1,
        nproc_per_node=asked["nproc_per_node"] or 0,
        min_replicas=asked["min_replicas"] or 0,
        backend=asked["backend"],
        shared_home=asked["shared_home"],
    )


async def create(fleet: DevServerApi, out: Output, wish: CreateRequest, asked: CreateOptions) -> None:
    if asked["dry_run"]:
        _show_manifest(out, DEVSERVERS.manifest(await fleet.validate(wish)))
        return
    span = parse_timeout(asked["timeout"])
    flavor = await fleet.flavor(wish.flavor)
    if flavor.spec.deprecated is not None:
        instead = flavor.spec.deprecated.redirect
        out.warn(
            f"{flavor.meta.name} goes away: {flavor.spec.deprecated.message}"
            + (f" Take {instead}." if instead else "")
        )
    begun = fleet.clock.now()
    server = await fleet.create(wish, flavor)
    out.say(f"{wish.name} is being made on {server.spec.flavor}.")
    if asked["wait"]:
        server = await wait_ready(fleet, wish.name, ProgressPrinter(out, fleet.clock), span)
        took = fleet.clock.now().since(begun)
        if server.spec.distributed is not None:
            nodes, placed = server.spec.distributed.nodes, placed_after(server)
            had = f", and had their nodes after {placed.total_seconds():.0f} s" if placed is not None else ""
            out.say(f"All {nodes} ranks were ready after {took.seconds:.1f} s{had}.")
        out.say(f"{wish.name} is ready: devctl ssh {wish.name}")
    else:
        out.say(f"Follow it: devctl describe {wish.name}; enter it: devctl ssh {wish.name}")
    _print_server(out, fleet, server)


async def start(fleet: DevServerApi, out: Output, name: str, time: str, at_most: str) -> None:
    """`at_most` is how long to wait, and empty for who does not."""
    span = parse_timeout(at_most) if at_most else None
    server = await fleet.start(name, parse_span(time) if time else None)
    if span is not None:
        server = await wait_ready(fleet, name, ProgressPrinter(out, fleet.clock), span)
        out.say(f"{name} is ready: devctl ssh {name}")
    _print_server(out, fleet, server)


async def stop(fleet: DevServerApi, out: Output, name: str, how: ChangeOptions) -> None:
    span = parse_timeout(how["timeout"])
    server = await fleet.server(name)
    if not server.spec.running:
        out.say(f"{name} is stopped already.")
        _print_server(out, fleet, server)
        return
    if how["dry_run"]:
        out.say(f"Would stop {name}; its home would be kept.")
        return
    confirm(f"Stop {name}? What runs in it ends; its home is kept.", yes=how["yes"])
    server = await fleet.stop(name)
    if how["wait"]:
        server = await until_stopped(fleet, name, span)
    out.say(f"{name} is {'stopped' if how['wait'] else 'stopping'}; its home is kept. devctl start {name}")
    _print_server(out, fleet, server)


async def extend(fleet: DevServerApi, out: Output, name: str, asked: ExtendOptions) -> None:
    by = parse_span(asked.time)
    if asked.dry_run:
        server = await fleet.server(name)
        found = extended(server, await fleet.flavor_of(server), by, fleet.now(), shorten=asked.shorten)
        out.say(f"{name} would run until {clock_text(found.end)}.")
        return
    found = await fleet.extend(name, by, shorten=asked.shorten)
    out.say(f"{name} runs until {clock_text(found.end)}.")
    _print_server(out, fleet, await fleet.server(name))


async def update(fleet: DevServerApi, out: Output, name: str, flavor: str, how: ChangeOptions) -> None:
    span = parse_timeout(how["timeout"])
    move = await plan_move(fleet, name, flavor)
    out.say(move.sentence)
    if how["dry_run"]:
        return
    wanted = move.flavor.meta.name
    if move.restarts:
        confirm(f"Move {name} from {move.server.spec.flavor} to {wanted}?", yes=how["yes"])
    server = await fleet.set_flavor(move.server, wanted)
    if how["wait"] and move.server.spec.running:
        server = await wait_ready(fleet, name, ProgressPrinter(out, fleet.clock), span, flavor=wanted)
        out.say(f"{name} is on {wanted}.")
    _print_server(out, fleet, server)


async def delete(fleet: DevServerApi, out: Output, names: tuple[str, ...], how: ChangeOptions) -> None:
    """All of them are looked up before the first goes."""
    span = parse_timeout(how["timeout"])
    servers = [await fleet.server(name) for name in dict.fromkeys(names)]
    kept = ", ".join(f"{one.meta.name} for {one.spec.home.retention}" for one in servers)
    if how["dry_run"]:
        out.say(f"Would delete {', '.join(one.meta.name for one in servers)}; homes kept: {kept}.")
        return
    confirm(f"Delete {', '.join(one.meta.name for one in servers)}? Homes are kept: {kept}.", yes=how["yes"])
    for one in servers:
        await fleet.delete(one.meta.name)
    for one in servers if how["wait"] else ():
        await wait_deleted(fleet, one.meta.name, span)
    out.say(f"Homes are kept: {kept}. A server of the same name takes its home over.")
    if out.shared.output is not Format.TABLE:
        out.show([ServerRecord.of(one) for one in servers], servers_table(fleet.clock.now()))


def _print_server(out: Output, fleet: DevServerApi, server: DevServerObject) -> None:
    """People have read how it went; machines get the server."""
    if out.shared.output is not Format.TABLE:
        out.show_one(ServerRecord.of(server), servers_table(fleet.clock.now()))


def _show_manifest(out: Output, manifest: dict[str, object]) -> None:
    """YAML unless something else is asked for: it is what kubectl would be given."""
    if out.shared.output is Format.JSON:
        out.text(as_json(plain(manifest)))
    else:
        out.text(as_yaml(plain(manifest)))


def create_command(
    out: Output, name: str, short: str, where: ClusterSelector, **asked: Unpack[CreateOptions]
) -> None:
    wish = create_request(name, short, asked)
    run_with_api(out, where, lambda fleet: create(fleet, out, wish, asked))


def start_command(
    out: Output, name: str, time: str, where: ClusterSelector, *, wait: bool, timeout: str
) -> None:
    run_with_api(out, where, lambda fleet: start(fleet, out, name, time, timeout if wait else ""))


def stop_command(out: Output, name: str, where: ClusterSelector, **how: Unpack[ChangeOptions]) -> None:
    run_with_api(out, where, lambda fleet: stop(fleet, out, name, how))


def extend_command(
    out: Output, name: str, time: str, where: ClusterSelector, *, shorten: bool, dry_run: bool
) -> None:
    asked = ExtendOptions(time, shorten, dry_run)
    run_with_api(out, where, lambda fleet: extend(fleet, out, name, asked))


def update_command(
    out: Output, name: str, flavor: str, where: ClusterSelector, **how: Unpack[ChangeOptions]
) -> None:
    run_with_api(out, where, lambda fleet: update(fleet, out, name, flavor, how))


def delete_command(
    out: Output, names: tuple[str, ...], where: ClusterSelector, **how: Unpack[ChangeOptions]
) -> None:
    run_with_api(out, where, lambda fleet: delete(fleet, out, names, how))
