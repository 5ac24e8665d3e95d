"""Authorization beyond roles: callers may change and read their own jobs, and act only as themselves."""

from neorion.iris.controllers.worker_tokens import MANUAL_JOIN, ROLE_JOIN, WORKER
from neorion.iris.model import JobName, WorkerId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.state import ClusterState
from neorion.keel.base import Denied
from neorion.keel.rpc import caller

ADMIN = "admin"
USER = "user"


def is_owner(name: JobName) -> bool:
    """True if the caller owns the job, which is below /NAME of user NAME, or is an administrator."""
    who = caller()
    return USER not in who.roles or ADMIN in who.roles or who.name == name.user


def check_owner(name: JobName) -> None:
    if not is_owner(name):
        raise _not_yours(name, f"Ask {name.user} or an administrator.")


def check_own_name(name: JobName) -> None:
    """Refuses to submit a job under another user's name."""
    if not is_owner(name):
        who = caller().name
        raise _not_yours(name, f"Use a name below /{who}, e.g. with IRIS_USER={who}, or ask {name.user}.")


def check_reader(name: JobName) -> None:
    """Refuses to read another user's logs and results. They may hold secrets, and a pickled value may run code."""
    if not is_owner(name):
        raise _not_yours(
            name, f"Ask {name.user} or an administrator, or see the job's state with: iris why {name}."
        )


def check_admin() -> None:
    who = caller()
    if USER in who.roles and ADMIN not in who.roles:
        raise Denied("iris.admins_only", f"{who.name} is not an administrator.", hint="Ask an administrator.")


def check_is_worker(worker: str) -> None:
    who = caller()
    if WORKER in who.roles and who.name != worker:
        raise Denied(
            "iris.not_this_worker",
            f"{who.name} cannot act as {worker[:80]}.",
            hint="Use the worker's own token.",
        )


def joining_worker_id(cluster: ClusterState, request: pb.JoinRequest) -> WorkerId:
    """Id of a worker that joins again, or "" for a new one. The token, not the request, identifies the machine."""
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
                f"The platform created the slice {request.slice[:80]}.",
                hint="Choose another name with --slice.",
            )
        return WorkerId("")
    return WorkerId(request.worker)


def _check_slice(own: str, request: pb.JoinRequest) -> None:
    if own != request.slice:
        raise Denied("iris.other_slice", f"A machine of {own} cannot join {request.slice[:80]}.")


def _not_yours(name: JobName, hint: str) -> Denied:
    return Denied("iris.not_yours", f"{name} belongs to {name.user}, not to {caller().name}.", hint=hint)
