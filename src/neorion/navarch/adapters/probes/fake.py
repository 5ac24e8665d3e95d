"""The probe of a machine of the fake cloud: healthy GPUs, and the faults that were ordered for it."""

from collections.abc import Callable, Sequence

from neorion.capacity.fake import FakeMachine
from neorion.capacity.gpu import Remedy, shape_of
from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.ports import Gpu


class FakeProbe:
    """`load` is the utilisation that it reports."""

    def __init__(self, machine: FakeMachine, clock: Clock, *, load: float = 50.0, gpus: int = 0) -> None:
        self._machine = machine
        self._clock = clock
        self._load = load
        shape = shape_of(machine.intent.instance_type)
        self._gpus = gpus or (shape.gpus if shape else 1)
        self._model = shape.model.name if shape else "fake"

    async def gpus(self) -> Sequence[Gpu]:
        return [
            Gpu(index, f"GPU-{self._machine.id}-{index}", self._model, 45.0, 300.0, self._load)
            for index in range(self._gpus)
        ]

    async def watch(self, tell: Callable[[HealthEvent], None], every: Duration) -> None:
        del every
        while True:
            fault = await self._machine.faults.get()
            tell(
                HealthEvent(
                    at=self._clock.now(),
                    kind=EventKind(fault.kind),
                    gpu=fault.gpu,
                    xid=fault.xid,
                    message=fault.message,
                    metrics=dict(fault.metrics),
                )
            )

    async def self_test(self) -> bool:
        return True

    async def treat(self, remedy: Remedy, gpu: int) -> None:
        del gpu
        if remedy is Remedy.RESET_GPU:
            self._machine.resets += 1
        else:
            self._machine.reboots += 1
