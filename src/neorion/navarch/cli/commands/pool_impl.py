"""The work of `navarch pool`."""

from neorion.keel.cli.kit import Output
from neorion.navarch.cli.session import ask
from neorion.navarch.cli.tables import POOLS, PoolRecord
from neorion.navarch.model.gen import navarch_pb as pb


def list_command(out: Output, server: str) -> None:
    found = ask(out, server, lambda client: client.pools())
    out.show([PoolRecord.of(one) for one in found], POOLS)


def describe_command(out: Output, name: str, server: str) -> None:
    found = ask(out, server, lambda client: client.calls.get_pool(pb.GetPoolRequest(pool=name)))
    out.show_one(PoolRecord.of(found), POOLS)


def scale_command(out: Output, name: str, nodes: int, why: str, server: str) -> None:
    request = pb.ScalePoolRequest(pool=name, nodes=nodes, why=why)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.scale_pool(request))), POOLS)


def pause_command(out: Output, name: str, why: str, server: str) -> None:
    request = pb.PausePoolRequest(pool=name, why=why)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.pause_pool(request))), POOLS)


def release_command(out: Output, name: str, why: str, server: str) -> None:
    request = pb.ReleasePoolRequest(pool=name, why=why)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.release_pool(request))), POOLS)


def readmit_command(out: Output, name: str, machine: str, why: str, server: str) -> None:
    request = pb.ReadmitMachineRequest(pool=name, machine=machine, why=why)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.readmit_machine(request))), POOLS)


def resume_command(out: Output, name: str, server: str) -> None:
    request = pb.ResumePoolRequest(pool=name)
    out.show_one(PoolRecord.of(ask(out, server, lambda client: client.calls.resume_pool(request))), POOLS)
