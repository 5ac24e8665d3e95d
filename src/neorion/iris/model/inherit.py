"""Inheritance of a child job: values that it does not set come from its parent."""

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.spec import JobSpec


def inherit(message: pb.JobSpec, parent: JobSpec) -> None:
    """Fills in the environment and the priority. Variables are merged, and the child's take precedence."""
    own, given = message.environment or pb.Environment(), parent.environment
    message.environment = pb.Environment(
        variables=dict(given.variables) | own.variables,
        bundle=own.bundle or given.bundle,
        packages=own.packages or list(given.packages),
        setup=own.setup or list(given.setup),
    )
    message.band = message.band or parent.band.name.lower()
