"""What machines cost, as far as anybody knows."""

import tomllib
from datetime import date
from importlib import resources

import pytest

from neorion.capacity.gpu import shape_of
from neorion.capacity.prices import PriceTable, listed_on


@pytest.mark.parametrize(
    ("cloud", "kind", "region", "spot", "price"),
    [
        ("aws", "p5.48xlarge", "us-west-2", False, 55.04),
        ("aws", "p5.48xlarge", "eu-west-1", False, None),
        ("aws", "p5.48xlarge", "us-west-2", True, None),
        ("coreweave", "gd-8xh100ib-i128", "", False, 49.24),
        ("lambda", "gpu_8x_h100_sxm5", "us-west-2", False, None),
        ("gcp", "a9-giant", "us-central1", False, None),
    ],
)
def test_the_list_holds_on_demand_and_in_its_regions(
    cloud: str, kind: str, region: str, *, spot: bool, price: float | None
):
    assert PriceTable(cloud).price(kind, region, spot=spot) == price


def test_what_an_account_pays_wins_over_the_list():
    book = PriceTable("aws", {"p5.48xlarge": 40.0, "p5.48xlarge/spot": 20.0})
    assert book.price("p5.48xlarge", "eu-west-1") == 40.0
    assert book.price("p5.48xlarge", "us-west-2", spot=True) == 20.0


def test_the_list_says_of_which_day_it_is_and_names_machines_that_we_know():
    table = tomllib.loads(resources.files("neorion.capacity.prices").joinpath("list.toml").read_text())
    for cloud, rows in table.items():
        assert isinstance(listed_on(cloud), date)
        assert all(shape_of(kind) is not None and price > 0 for kind, price in rows["price"].items())
    assert listed_on("fake") is None
