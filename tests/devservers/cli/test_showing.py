import io
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from msgspec import convert
from msgspec.structs import replace

from neorion.devservers.cli.commands.access_impl import CopyRequest, copy_of
from neorion.devservers.cli.commands.cost_impl import CostRecord, bills, together
from neorion.devservers.cli.commands.monitor_impl import format_gpus
from neorion.devservers.cli.flavor_table import FlavorRecord
from neorion.devservers.cli.progress import ProgressPrinter
from neorion.devservers.client import Progress, ProgressStep
from neorion.devservers.decide.cost import opened
from neorion.devservers.model import DevServerSpec, DevServerStatus, Price
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject
from neorion.devservers.testing import a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.base import Invalid
from neorion.keel.cli import ColorMode, SharedOptions
from neorion.keel.cli.kit import Output, TerminalStream
from neorion.keel.clock import SystemClock

AWS = Path(__file__).parent.parent.parent.parent / "infra/devservers/aws/flavors.yaml"


def test_a_step_and_an_obstacle_are_told_once():
    stream = io.StringIO()
    screen = TerminalStream.of(stream, ColorMode.NEVER, {})
    tell = ProgressPrinter(Output(SharedOptions(), screen, screen, {}), SystemClock())
    steps = [Progress((ProgressStep("volume", True), ProgressStep("scheduled", False))) for _ in range(2)]
    stuck = Progress(steps[0].steps, "No node has room.")
    done = Progress((ProgressStep("volume", True), ProgressStep("scheduled", True)))
    for progress in (*steps, stuck, stuck, done):
        tell(progress)
    assert [line.split(maxsplit=1)[0] for line in stream.getvalue().splitlines()] == [
        "volume",
        "waits",
        "scheduled",
    ]


def test_the_flavors_of_aws_are_known_by_their_label_and_machine():
    flavors = [convert(one, DevServerFlavor) for one in yaml.safe_load_all(AWS.read_text())]
    records = {one.name: one for one in map(FlavorRecord.of, flavors)}
    assert {one.cloud for one in records.values()} == {"aws"}
    t4 = records["g4dn.xlarge"]
    assert (t4.machine, t4.gpus, t4.per_hour, t4.longest) == (
        "g4dn.xlarge",
        "1 nvidia.com/gpu",
        "0.526",
        "7d",
    )


@pytest.mark.parametrize(("running", "amount", "rate"), [(True, "6.00", "3"), (False, "1.00", "0.5")])
def test_what_a_server_costs_goes_on_after_the_last_entry(running: bool, amount: str, rate: str):  # noqa: FBT001 -- a case
    account = opened(Price(per_hour="3", stopped="0.5"), CREATED)
    status = DevServerStatus(cost=replace(account, running=running))
    record = CostRecord.of(a_server(DevServerSpec(flavor="cpu-small"), status), CREATED + timedelta(hours=2))
    assert (record.amount, record.per_hour) == (amount, rate)


def test_each_user_has_one_bill_and_the_dearest_comes_first():
    def server(namespace: str, price: Price, *, running: bool = True) -> DevServerObject:
        status = DevServerStatus(cost=replace(opened(price, CREATED), running=running))
        made = a_server(DevServerSpec(flavor="cpu-small", owner="somebody else"), status)
        return replace(made, meta=replace(made.meta, namespace=namespace))

    cheap, dear = Price(per_hour="0.5", stopped="0.1"), Price(per_hour="3")
    servers = [
        server("dev-ann", cheap),
        server("dev-ann", cheap, running=False),
        server("dev-bob", dear),
        server("team", Price(per_hour="1", currency="EUR")),
    ]
    found = bills(servers, CREATED + timedelta(hours=2))
    assert [
        (one.user, one.servers, one.running, one.per_hour, one.amount, one.currency) for one in found
    ] == [
        ("", 1, 1, "1", "2.00", "EUR"),
        ("bob", 1, 1, "3", "6.00", "USD"),
        ("ann", 2, 1, "0.6", "1.20", "USD"),
    ]
    assert together(found) == "2.00 EUR, 7.20 USD"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("87, 12390, 81920\n3, 0, 81920\n", ("87% 12.1/80.0Gi", "3% 0.0/80.0Gi")),
        ("[N/A], 1, 2\n", ()),
        ("No devices were found\n", ()),
        ("", ()),
    ],
)
def test_the_lines_of_nvidia_smi_are_read_and_rubbish_is_not(text: str, words: tuple[str, ...]):
    assert format_gpus(text) == words


@pytest.mark.parametrize(
    ("source", "target", "copy"),
    [
        ("a", "box:b", CopyRequest("box", True, Path("a"), "b")),
        ("box:b", "a", CopyRequest("box", False, Path("a"), "b")),
        ("./a:b", "box:", CopyRequest("box", True, Path("./a:b"), "")),
    ],
)
def test_the_side_with_a_name_is_the_server(source: str, target: str, copy: CopyRequest):
    assert copy_of(source, target) == copy


def test_a_copy_needs_one_side_here():
    with pytest.raises(Invalid):
        copy_of("box:a", "other:b")
