"""The files of an order, as they arrive in parts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from neorion.iris.adapters.runtimes.container.messages import Order
from neorion.iris.adapters.runtimes.process.protocol import StartRequest
from neorion.iris.model import AttemptId, Command, Digest, FunctionCall, Resources, TaskEnvironment
from neorion.iris.ports import AttemptSpec
from neorion.keel.base import Duration

# The fields of an order that name files.
FILES: Final = ("function", "input", "bundle")


class OrderFiles:
    """An order and its files, one after the other in one stream."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        """`variables` are the container's own, and win over the order's."""
        self._folder = folder
        self._variables = variables
        self._order: Order | None = None
        self._left: list[tuple[str, int]] = []

    def expect(self, order: Order) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._order = order
        self._left = list(order.files)
        for name, _ in order.files:
            (self._folder / name).write_bytes(b"")
        self._skip_whole()

    def add(self, data: bytes) -> None:
        """The next bytes. A part holds bytes of one file only."""
        (name, size), *rest = self._left
        with (self._folder / name).open("ab") as file:
            file.write(data)
        self._left = [(name, size - len(data)), *rest]
        self._skip_whole()

    def spec(self) -> AttemptSpec | None:
        """The order as the process runtime takes it, once everything is here. The container sets its limits."""
        if self._order is None or self._left:
            return None
        job, names = self._order.job, {name for name, _ in self._order.files}
        function, given, bundle = (self._folder / name if name in names else None for name in FILES)
        return AttemptSpec(
            AttemptId(job.attempt),
            Command(tuple(job.argv)) if job.argv else FunctionCall(Digest("")),
            TaskEnvironment(packages=tuple(job.packages), setup=tuple(job.setup)),
            tuple({**dict(job.variables), **self._variables}.items()),
            Resources(),
            bundle=bundle,
            function=function,
            input=given,
            run_limit=Duration(job.run_limit_ns) if job.run_limit_ns else None,
        )

    def _skip_whole(self) -> None:
        while self._left and self._left[0][1] <= 0:
            del self._left[0]


def named_files(job: StartRequest) -> list[tuple[str, Path]]:
    """Which files an order needs, and where they lie on the worker's disk."""
    found = ((name, getattr(job, name)) for name in FILES)
    return [(name, Path(path)) for name, path in found if path]
