"""Every cloud that can be bought from, each on its own double, with the same levers."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeProvider
from neorion.capacity.provider import Intent, IntentId, Provider
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, seeded_rng
from tests.capacity.clouds.compute_engine import compute_engine
from tests.capacity.clouds.ec2 import ec2
from tests.capacity.clouds.lambda_api import lambda_api
from tests.capacity.clouds.node_pools import node_pools


class Rig(Protocol):
    """One cloud to test: the provider, an intent it can serve, and levers for what goes wrong on its side."""

    @property
    def provider(self) -> Provider: ...

    @property
    def intent(self) -> Intent: ...

    def empty(self) -> None:
        """From now on there is no machine to be had."""
        ...

    def fill_quota(self) -> None: ...

    def lock_out(self) -> None:
        """The credentials are not accepted any more."""
        ...

    def lose_answers(self) -> None:
        """Calls are carried out, and their answers get lost."""
        ...

    def answer_again(self) -> None: ...


class FakeRig:
    def __init__(self) -> None:
        self.behaviour = FakeCloudOptions(boot=Duration(0), stop=Duration(0))
        self.cloud = FakeCloud(SystemClock(), seeded_rng(1), self.behaviour)
        self.provider: Provider = FakeProvider("fake", self.cloud)
        self.intent = Intent(SystemIds().new(IntentId), "navarch-a", "gpu_8x_h100_sxm5", "us-west-2")

    def empty(self) -> None:
        self.behaviour.stock["us-west-2"] = 0

    def fill_quota(self) -> None:
        self.behaviour.quota = 0

    def lock_out(self) -> None:
        self.behaviour.denied = True

    def lose_answers(self) -> None:
        self.behaviour.lost = 0.999_999
        self.cloud.rng = seeded_rng("after")

    def answer_again(self) -> None:
        self.behaviour.lost = 0.0


@asynccontextmanager
async def _fake() -> AsyncGenerator[Rig]:
    yield FakeRig()


RIGS: dict[str, Callable[[], AbstractAsyncContextManager[Rig]]] = {
    "aws": ec2,
    "coreweave": node_pools,
    "fake": _fake,
    "gcp": compute_engine,
    "lambda": lambda_api,
}
