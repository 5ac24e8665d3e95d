"""What a caller may do beyond their role: change and read their own, and speak for themselves."""

from neorion.iris.controllers.worker_tokens import MANUAL_JOIN, ROLE_JOIN, WORKER
from neorion.iris.model import JobName, WorkerId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.state import ClusterState
from neorion.keel.base import Denied
from neorion.keel.rpc import caller

ADMIN = "admin"
USER = "user"


def is_owner(name: JobName) -> bool:
    """Jobs below /NAME are NAME's; an administrator acts for everybody."""
    who = caller()
    return USER not in who.roles or ADMIN in who.roles or who.name == name.user


def check_owner(name: JobName) -> None:
    if not is_owner(name):
        raise _not_yours(name, f"ask {name.user} or an administrator")


def check_own_name(name: JobName) -> None:
    """Whose it would be, if it were submitted under this name."""
    if not is_owner(name):
        who = caller().name
        raise _not_yours(
            name, f"use a name below /{who}, which IRIS_USER={who} does for you; or ask {name.user}"
        )


def check_reader(name: JobName) -> None:
    """What a job writes and returns is its owner's: it may hold secrets, and a value is code for whoever unpickles it."""
    if not is_owner(name):
        raise _not_yours(
            name, f"ask {name.user} or an administrator; how it fares is shown by: iris why {name}"
        )


def check_admin() -> None:
    who = caller()
    if USER in who.roles and ADMIN not in who.roles:
        raise Denied("iris.admins_only", f"{who.name} is no administrator.", hint="Ask an administrator.")


def check_is_worker(worker: str) -> None:
    who = caller()
    if WORKER in who.roles and who.name != worker:
        raise Denied(
            "iris.not_this_worker",
            f"{who.name} cannot speak for {worker[:80]}.",
            hint="Use the worker's own token.",
        )


def joining_worker_id(cluster: ClusterState, request: pb.JoinRequest) -> WorkerId:
    """The worker that joins again, or "" for a new one. Whose machine it is follows from the token, not from what it says."""
    who = caller()
    if WORKER in who.roles:
        known = cluster.workers[WorkerId(who.name)]
        _check_slice(known.slice, request)
        return known.id
    if ROLE_JOIN in who.roles:
        if who.name != MANUAL_JOIN:
            _check_slice(who.name, request)
        elif request.slice in cluster.slices:
            raise Denied(
                "iris.not_by_hand",
                f"{request.slice[:80]} was made by the platform.",
                hint="Choose another name with --slice.",
            )
        return WorkerId("")
    return WorkerId(request.worker)


def _check_slice(own: str, request: pb.JoinRequest) -> None:
    if own != request.slice:
        raise Denied("iris.other_slice", f"A machine of {own} cannot join {request.slice[:80]}.")


def _not_yours(name: JobName, hint: str) -> Denied:
    return Denied("iris.not_yours", f"{name} belongs to {name.user}, and you are {caller().name}.", hint=hint)
