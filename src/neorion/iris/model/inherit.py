"""What a job has from the job that submitted it: where it says nothing itself, all that its parent said."""

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.spec import JobSpec


def inherit(message: pb.JobSpec, parent: JobSpec) -> None:
    """Fills in the environment and the priority. Variables are joined, and the child's own win."""
    own, given = message.environment or pb.Environment(), parent.environment
    message.environment = pb.Environment(
        variables=dict(given.variables) | own.variables,
        bundle=own.bundle or given.bundle,
        packages=own.packages or list(given.packages),
        setup=own.setup or list(given.setup),
    )
    message.band = message.band or parent.band.name.lower()
