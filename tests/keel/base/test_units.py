import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Duration, Instant, Quantity, UnitError

NS_MAX = 2**63 - 1
durations = st.integers(0, NS_MAX).map(Duration)
quantities = st.one_of(st.integers(0, 10**30), st.integers(0, 2**63 - 1).map(lambda n: n * 10**9)).map(
    lambda n: Quantity(min(n, (2**63 - 1) * 10**9))
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30m", 1800),
        ("1h", 3600),
        ("2h30m", 9000),
        ("1d", 86400),
        ("1w", 604800),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("90", 90),
        (" 5m ", 300),
        (5, 5),
        (0.1, 0.1),
        (0, 0),
        ({"milliseconds": 1800000}, 1800),
        ({"seconds": 1, "milliseconds": 500}, 1.5),
        ({"hours": 1}, 3600),
    ],
)
def test_durations_in_every_form_people_write(written: object, seconds: float):
    assert Duration.parse(written).seconds == seconds


@pytest.mark.parametrize(
    "wrong",
    ["", "m", "5x", "-5m", "5 m", "1h 2m", "30m2h", "1m1m", "1e3s", "１０s", "∞", "1d\n2h", None, True, [], -1, -0.5,
     math.nan, math.inf, "300000d", "9" * 5000 + "s", {}, {"fortnights": 1}, {"seconds": "5"}, {"seconds": True},
     {"seconds": -1}, {"seconds": math.inf}],
)  # fmt: skip
def test_what_is_no_duration_is_refused_in_one_sentence(wrong: object):
    with pytest.raises(UnitError) as caught:
        Duration.parse(wrong)
    assert 0 < len(str(caught.value)) < 200


@given(durations)
def test_a_duration_reads_back_from_its_text(span: Duration):
    assert Duration.parse(str(span)) == span


@given(durations, durations)
def test_durations_order_and_subtract_like_lengths(a: Duration, b: Duration):
    assert (a < b) == (a.ns < b.ns)
    assert (a - b).ns == max(0, a.ns - b.ns)


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_a_unit_error(text: str):
    try:
        span = Duration.parse(text)
    except UnitError:
        return
    assert Duration.parse(str(span)) == span


@pytest.mark.parametrize(
    ("written", "whole", "milli"),
    [
        ("512Mi", 512 * 2**20, 512 * 2**20 * 1000),
        ("500m", 1, 500),
        ("2048GB", 2048 * 10**9, 2048 * 10**12),
        ("16GB", 16 * 10**9, 16 * 10**12),
        ("64GiB", 64 * 2**30, 64 * 2**30 * 1000),
        ("1e3", 1000, 10**6),
        ("5E3", 5000, 5 * 10**6),
        ("5E", 5 * 10**18, 5 * 10**21),
        ("0.5", 1, 500),
        (".5Gi", 2**29, 2**29 * 1000),
        ("100n", 1, 1),
        (4, 4, 4000),
        (0.25, 1, 250),
        ("0", 0, 0),
    ],
)
def test_quantities_in_kubernetes_forms_and_bytes(written: object, whole: int, milli: int):
    amount = Quantity.parse(written)
    assert (amount.whole, amount.milli) == (whole, milli)


@pytest.mark.parametrize(
    "wrong",
    ["", "Mi", "-1", "1.2.3", "1KiKi", "1 Gi", "0x10", "1e999", "five", "1mi", "1Bi", "nan", "inf", None, True, [1], {},
     math.nan, math.inf, -2, "9E99", "10E", "9" * 31, "1mB0"],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_in_one_sentence(wrong: object):
    with pytest.raises(UnitError) as caught:
        Quantity.parse(wrong)
    assert 0 < len(str(caught.value)) < 200


@given(quantities)
def test_a_quantity_reads_back_from_its_text(amount: Quantity):
    assert Quantity.parse(str(amount)) == amount


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_unit_error(text: str):
    try:
        amount = Quantity.parse(text)
    except UnitError:
        return
    assert Quantity.parse(str(amount)) == amount


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_quantities_add_exactly(a: int, b: int):
    assert (Quantity.of(a) + Quantity.of(b)).whole == a + b


def test_an_amount_below_nothing_is_refused():
    with pytest.raises(UnitError):
        _ = Quantity.of(1) - Quantity.of(2)


def test_sizes_are_written_as_short_as_they_are_exact():
    assert [str(Quantity.parse(text)) for text in ("2048GB", "64GiB", "1500", "0.5", "0")] == [
        "2048G", "64Gi", "1500", "500m", "0",
    ]  # fmt: skip


def test_instants_show_as_utc_and_measure_forward_only():
    birth = Instant(1_767_225_600_123_000_000)
    assert str(birth) == "2026-01-01T00:00:00.123Z"
    later = birth + Duration.of(seconds=90)
    assert str(later.since(birth)) == "1m30s"
    assert later - Duration.of(seconds=90) == birth
    assert birth.since(later) == Duration(0)
