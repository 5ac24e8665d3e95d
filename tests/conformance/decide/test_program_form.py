"""The program's form, byte for byte."""

from pathlib import Path

import pytest

from neorion.conformance.adapters.product_file import read_product
from neorion.conformance.decide.product_file import blank_product
from neorion.conformance.decide.program_form import program_report
from neorion.conformance.model import VERSIONS, Category, Entry, Metadata, Product, requirements

GOLDEN = Path(__file__).parent.parent / "golden"


def test_a_merged_submission_renders_as_it_was_published():
    rendered = program_report(read_product(GOLDEN / "cks-1.33.yaml")).encode()
    assert rendered == (GOLDEN / "cks-1.33.md").read_bytes()


def test_every_status_and_both_optional_rows_render_as_the_program_has_them():
    rendered = program_report(read_product(GOLDEN / "statuses-1.34.yaml")).encode()
    assert rendered == (GOLDEN / "statuses-1.34.md").read_bytes()


def test_a_long_label_is_cut_and_its_link_is_not():
    link = "https://docs.example.invalid/" + "a" * 60
    entry = Entry("dra_support", "d", "SHOULD", "Implemented", (link, ""))
    rendered = program_report(Product(Metadata(), {Category.ACCELERATORS: (entry,)}))
    assert f"- [{link.removeprefix('https://')[:57]}...]({link})\n" in rendered


def test_a_placeholder_is_left_out():
    assert "Website" not in program_report(blank_product("1.33"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_template_holds_every_requirement_of_its_version(version: str):
    entries = [entry for _, entry in blank_product(version).entries]
    assert [entry.id for entry in entries] == [each.id for each in requirements(version)]
    assert all(entry.status == "" for entry in entries)
