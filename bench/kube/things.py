"""The objects of the operator benchmark, and two sides of it.

`python -m bench.kube.things KUBECONFIG ROUND` is our operator; with `COUNT` at the end it only writes, as fast as it is let.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import uvloop
from msgspec import field

from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Kind, KubeObject, KubeStruct, MergePatch, ObjectKey
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.kube.control import (
    Applier,
    Controller,
    InformerFactory,
    Operator,
    generation_changed,
    self_key,
)

NAMESPACE: Final = "bench"
# More at once did not bring more through.
IN_FLIGHT: Final = 32


class ThingSpec(KubeStruct, frozen=True):
    size: int = 0


class ThingStatus(KubeStruct, frozen=True):
    turn: int = field(name="round", default=0)
    observed: int = 0


class Thing(KubeObject, frozen=True):
    spec: ThingSpec = ThingSpec()
    status: ThingStatus = ThingStatus()


THING: Final = Kind(Thing, "Thing", "things", "bench.neorion.dev")

_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION_BODY: Final[dict[str, Any]] = {
    "metadata": {"name": THING.resource},
    "spec": {
        "group": THING.group,
        "scope": "Namespaced",
        "names": {"kind": THING.name, "plural": THING.plural},
        "versions": [
            {
                "name": THING.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}
                },
            }
        ],
    },
}


def thing(number: int) -> dict[str, object]:
    """About a kilobyte, as a development server is."""
    return {
        "metadata": {
            "name": f"thing-{number:05d}",
            "namespace": NAMESPACE,
            "labels": {"owner": f"u{number % 200}"},
        },
        "spec": {
            "size": number,
            "image": "registry.example/image:1",
            "notes": [f"note {n}" * 4 for n in range(16)],
        },
    }


async def operate(kubeconfig: Path, turn: int) -> None:
    clock, rng = SystemClock(), system_rng()
    async with connect(read_kubeconfig([kubeconfig]).cluster(), "bench/1") as api:
        informers = InformerFactory(api, clock, rng)
        things = informers.of(THING, NAMESPACE)
        applier = Applier(api, "bench", informers)

        async def reconcile(key: ObjectKey) -> Duration | None:
            one = things.get(key)
            if one is not None:
                await applier.write_status(THING, one, ThingStatus(turn, one.meta.generation))
            return None

        controller = Controller("things", reconcile, clock, rng)
        controller.watch(things, self_key, generation_changed)
        await Operator(informers, [controller]).run(anyio.Event())


async def write(kubeconfig: Path, turn: int, count: int) -> None:
    """The same status writes, with nothing seen, decided or remembered: what the API server can take."""
    limit = anyio.Semaphore(IN_FLIGHT)
    async with connect(read_kubeconfig([kubeconfig]).cluster(), "bench-writer/1") as api:

        async def one(number: int) -> None:
            change = MergePatch({"status": {"round": turn, "observed": 1}})
            async with limit:
                await api.patch(THING, f"thing-{number:05d}", change, NAMESPACE, "status")

        async with anyio.create_task_group() as group:
            for number in range(count):
                group.start_soon(one, number)
        await anyio.sleep_forever()


if __name__ == "__main__":
    kubeconfig, turn, *count = sys.argv[1:]
    config, number = Path(kubeconfig), int(turn)
    side = partial(write, config, number, int(count[0])) if count else partial(operate, config, number)
    anyio.run(side, backend_options={"loop_factory": uvloop.new_event_loop})
