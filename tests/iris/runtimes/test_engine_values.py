"""What engines decide without an engine: GPUs, names of images, logs, and how long a pull may fail."""

import pytest

from neorion.iris.adapters.runtimes.container.attempt import START_PATIENCE
from neorion.iris.adapters.runtimes.container.image_pull import ImagePull
from neorion.iris.adapters.runtimes.containerd.gpus import GpuSupport, gpu_access, gpu_support
from neorion.iris.adapters.runtimes.docker.docker_api import split_image, unframed
from neorion.keel.base import Duration, Error, Invalid, NotFound, Retry, Terminal
from tests.iris.manual_clock import ManualClock

MINUTE = Duration.of(minutes=1)
CARDS = {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}


@pytest.mark.parametrize(
    ("config", "spec", "support"),
    [
        ('{"containerd": {"runtimes": {"runc": {}}}}', "nvidia", GpuSupport()),
        (
            '{"containerd": {"runtimes": {"nvidia": {}}}, "enableCDI": false}',
            "nvidia",
            GpuSupport(handler=True),
        ),
        ('{"containerd": {"runtimes": {}}, "enableCDI": true}', "nvidia", GpuSupport(cdi=True)),
        ('{"containerd": {"runtimes": {}}, "enableCDI": true}', "", GpuSupport()),
        ("{}", "nvidia", GpuSupport()),
    ],
)
def test_a_containerd_says_what_it_can_do_about_gpus(config: str, spec: str, support: GpuSupport):
    assert gpu_support(config, has_cdi_spec=bool(spec)) == support


def test_gpus_come_by_cdi_then_by_the_handler_then_as_files():
    both = gpu_access(["0", "1"], GpuSupport(handler=True, cdi=True), CARDS.__contains__)
    assert (both.cdi, both.handler) == (("nvidia.com/gpu=0", "nvidia.com/gpu=1"), "")
    handled = gpu_access(["0", "1"], GpuSupport(handler=True), CARDS.__contains__)
    assert (handled.handler, handled.variables) == ("nvidia", (("NVIDIA_VISIBLE_DEVICES", "0,1"),))
    files = gpu_access(["1"], GpuSupport(), CARDS.__contains__)
    assert files.devices == ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")


def test_a_gpu_that_the_machine_does_not_have_is_refused():
    with pytest.raises(Invalid, match="has no /dev/nvidia7"):
        gpu_access(["0", "7"], GpuSupport(), CARDS.__contains__)


def test_a_task_without_gpus_gets_none():
    access = gpu_access([], GpuSupport(handler=True, cdi=True), CARDS.__contains__)
    assert (access.handler, access.devices, access.cdi) == ("", (), ())
    assert access.variables == (("NVIDIA_VISIBLE_DEVICES", "void"),)


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("busybox", ("busybox", "latest")),
        ("team/task:1.2", ("team/task", "1.2")),
        ("registry:5000/task", ("registry:5000/task", "latest")),
        ("registry:5000/task:1", ("registry:5000/task", "1")),
        ("task@sha256:abc", ("task", "sha256:abc")),
    ],
)
def test_the_name_of_an_image_is_taken_apart(image: str, parts: tuple[str, str]):
    assert split_image(image) == parts


def test_frames_of_a_log_are_put_together():
    frames = b"\x01\0\0\0\0\0\0\x03one" + b"\x02\0\0\0\0\0\0\x04 two"
    assert unframed(frames) == b"one two"
    assert unframed(b"") == b""


class Registry:
    """Answers each pull with the next of these."""

    def __init__(self, *answers: Error | None) -> None:
        self.answers = list(answers)
        self.has = False

    async def has_image(self, _: str) -> bool:
        return self.has

    async def pull(self, _: str) -> None:
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer
        self.has = True


AWAY = Terminal("test.away", "The registry is away.")


@pytest.mark.anyio
class TestImagePull:
    async def test_an_image_is_pulled_once(self):
        registry = Registry(None)
        pull = ImagePull("task:1", registry.has_image, registry.pull, ManualClock())
        await pull.ensure()
        await pull.ensure()
        assert registry.answers == []

    async def test_an_image_that_is_nowhere_is_refused_at_once(self):
        registry = Registry(NotFound("test.none", "There is none."))
        pull = ImagePull("task:1", registry.has_image, registry.pull, ManualClock())
        with pytest.raises(NotFound, match="task:1 cannot be pulled: There is none"):
            await pull.ensure()

    async def test_a_registry_may_be_away_for_a_while(self):
        clock, registry = ManualClock(), Registry(*[AWAY] * 4, None)
        pull = ImagePull("task:1", registry.has_image, registry.pull, clock)
        for _ in range(3):
            with pytest.raises(Retry):
                await pull.ensure()
            clock.advance(MINUTE)
        with pytest.raises(NotFound, match="The registry is away"):
            await pull.ensure()

    async def test_each_trouble_has_its_own_patience(self):
        clock, registry = ManualClock(), Registry(AWAY, AWAY, None)
        pull = ImagePull("task:1", registry.has_image, registry.pull, clock)
        for _ in range(2):
            with pytest.raises(Retry):
                await pull.ensure()
            clock.advance(START_PATIENCE + MINUTE)
        await pull.ensure()
