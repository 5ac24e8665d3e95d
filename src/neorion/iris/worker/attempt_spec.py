"""Completes an order of the controller for the runtime: with its files, and the variables for the controller."""

from neorion.iris.model import AttemptId, Digest, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.spec import FunctionCall
from neorion.iris.ports import AttemptSpec
from neorion.iris.worker.blob_cache import BlobCache
from neorion.keel.base import Duration
from neorion.keel.rpc import Channel


async def attempt_spec(start: pb.Start, cache: BlobCache, channel: Channel) -> AttemptSpec:
    """Builds the spec of an attempt. Fetches files that are not in the cache."""
    attempt = AttemptId(start.attempt)
    cache.keep((Digest(blob.digest), blob.body) for blob in start.blobs)
    entry = wire.entry(start.entry)
    environment = wire.environment(start.environment)
    return AttemptSpec(
        attempt=attempt,
        entry=entry,
        environment=environment,
        variables=tuple(sorted((start.variables | _controller(start, channel)).items())),
        resources=wire.resources(start.resources),
        bundle=await cache.path(environment.bundle, attempt) if environment.bundle else None,
        function=await cache.path(entry.function, attempt) if isinstance(entry, FunctionCall) else None,
        input=await cache.path(wire.digest(start.input), attempt) if start.input else None,
        pool=start.pool,
        run_limit=Duration(start.run_limit_ms * 1_000_000) if start.run_limit_ms else None,
    )


def _controller(start: pb.Start, channel: Channel) -> dict[str, str]:
    """Variables with which the task calls the controller: its address, and the token with the pin of its key."""
    token = channel.pinned(start.variables.get("IRIS_TOKEN", ""))
    return {"IRIS_CONTROLLER": channel.address, "IRIS_TOKEN": token}
