"""What the kernel counts on the fabric's ports, and what of it is worth telling."""

from pathlib import Path

from neorion.navarch.adapters.probes.gpu_reading import HealthSignal
from neorion.navarch.adapters.probes.infiniband import (
    DOWN_S,
    HOUR_S,
    SYMBOLS_MAX,
    InfinibandCounters,
    Port,
    read,
)

ONE = "mlx5_0/1"


def port(*, active: bool = True, **counters: int) -> dict[str, Port]:
    return {ONE: Port(active, counters)}


def told(signs: list[HealthSignal]) -> list[tuple[str, dict[str, float]]]:
    return [(sign.message, sign.metrics) for sign in signs]


def test_one_more_link_failure_is_fatal_and_a_few_lost_packets_are_not():
    fabric = InfinibandCounters()
    fabric.update(port(link_downed=3, port_rcv_errors=10), 0.0)
    counted, down = fabric.update(port(link_downed=4, port_rcv_errors=40), 60.0)
    assert (told(counted), down) == (
        [(f"port {ONE}: 1 more link_downed", {"fatal": 1.0, "link_downed": 1.0})],
        [],
    )
    counted, _ = fabric.update(port(link_downed=4, port_rcv_errors=700), 120.0)
    assert told(counted) == [
        (f"port {ONE}: 660 more port_rcv_errors", {"fatal": 0.0, "port_rcv_errors": 660.0})
    ]


def test_counters_that_were_set_back_are_no_news():
    fabric = InfinibandCounters()
    fabric.update(port(link_downed=3, symbol_error=500), 0.0)
    assert fabric.update(port(link_downed=0, symbol_error=0), 60.0) == ([], [])
    counted, _ = fabric.update(port(link_downed=1, symbol_error=0), 120.0)
    assert [sign.metrics["fatal"] for sign in counted] == [1.0]


def test_symbol_errors_count_by_the_hour():
    fabric = InfinibandCounters()
    fabric.update(port(symbol_error=0), 0.0)
    assert fabric.update(port(symbol_error=SYMBOLS_MAX), HOUR_S - 1)[0] == []
    # The hour is over: the next one begins with what there is.
    assert fabric.update(port(symbol_error=SYMBOLS_MAX), HOUR_S)[0] == []
    assert fabric.update(port(symbol_error=2 * SYMBOLS_MAX), HOUR_S + 60)[0] == []
    counted, _ = fabric.update(port(symbol_error=2 * SYMBOLS_MAX + 1), HOUR_S + 120)
    assert [sign.metrics for sign in counted] == [{"fatal": 1.0, "symbol_error": SYMBOLS_MAX + 1.0}]


def test_a_port_that_was_up_and_stays_down_is_told_until_it_is_up_again():
    fabric = InfinibandCounters()
    fabric.update(port(), 0.0)
    assert fabric.update(port(active=False), 10.0) == ([], [])
    assert fabric.update(port(active=False), DOWN_S + 9) == ([], [])
    (sign,) = fabric.update(port(active=False), DOWN_S + 10)[1]
    assert (sign.message, sign.metrics) == (f"port {ONE} is down", {"fatal": 1.0})
    # An adapter that is gone altogether is no better.
    assert [one.key for one in fabric.update({}, DOWN_S + 70)[1]] == [sign.key]
    assert fabric.update(port(), DOWN_S + 130) == ([], [])


def test_a_port_that_nobody_wired_is_nobodys_fault():
    fabric = InfinibandCounters()
    for at in (0.0, DOWN_S, 10 * DOWN_S):
        assert fabric.update(port(active=False), at) == ([], [])


def test_ports_are_read_from_the_kernels_files_whatever_some_of_them_lack(tmp_path: Path):
    for name, state in (("mlx5_0", "4: ACTIVE"), ("mlx5_1", "1: DOWN")):
        folder = tmp_path / name / "ports" / "1"
        (folder / "counters").mkdir(parents=True)
        (folder / "hw_counters").mkdir()
        (folder / "state").write_text(f"{state}\n")
        (folder / "counters" / "link_downed").write_text("7\n")
    (tmp_path / "mlx5_0" / "ports" / "1" / "hw_counters" / "rnr_nak_retry_err").write_text("2\n")
    (tmp_path / "mlx5_1" / "ports" / "1" / "counters" / "symbol_error").write_text("not a number\n")
    assert read(tmp_path) == {
        "mlx5_0/1": Port(active=True, counters={"link_downed": 7, "rnr_nak_retry_err": 2}),
        "mlx5_1/1": Port(active=False, counters={"link_downed": 7}),
    }
    assert read(tmp_path / "none") == {}
