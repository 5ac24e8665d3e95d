"""The pull of the one image that all containers of a worker have."""

from collections.abc import Awaitable, Callable

import anyio

from neorion.iris.adapters.runtimes.container.attempt import START_PATIENCE
from neorion.keel.base import Duration, Error, NotFound, Retry
from neorion.keel.clock import Clock


class ImagePull:
    """Pulls an image where it is missing, one pull at a time."""

    def __init__(
        self,
        image: str,
        has: Callable[[str], Awaitable[bool]],
        pull: Callable[[str], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._image = image
        self._has = has
        self._pull = pull
        self._clock = clock
        self._lock = anyio.Lock()
        # The first and the last failure without a success or a long pause between them.
        self._failing: tuple[float, float] | None = None

    async def ensure(self) -> None:
        """Raises Retry while a failure may heal, as that of a registry that restarts."""
        async with self._lock:
            if await self._has(self._image):
                return
            try:
                await self._pull(self._image)
            except NotFound as error:
                raise self._missing(error) from error
            except Error as error:
                if self._failing_for() > START_PATIENCE:
                    raise self._missing(error) from error
                raise Retry(
                    "runtime.image_pull",
                    f"The image {self._image} cannot be pulled yet: {error.sentence}",
                    hint="Check the name of the image and the access to its registry.",
                ) from error
            self._failing = None

    def _failing_for(self) -> Duration:
        now = self._clock.monotonic()
        first, last = self._failing or (now, now)
        if now - last > START_PATIENCE.seconds:
            first = now
        self._failing = first, now
        return Duration.of(seconds=now - first)

    def _missing(self, error: Error) -> NotFound:
        return NotFound(
            "runtime.image",
            f"The image {self._image} cannot be pulled: {error.sentence}",
            hint="Check its name, and that this machine may pull it.",
        )
