import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import NAME_MAX, Id, did_you_mean, is_name, nearest


class ShipId(Id):
    prefix = "ship"


def test_an_id_is_a_text_of_its_kind():
    ship = ShipId.made_of("argo")
    assert ship == "ship-argo"
    assert isinstance(ship, ShipId)
    assert hash(ship) == hash("ship-argo")


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_rfc_1123_labels_are_names(text: str):
    assert is_name(text)


@given(st.text(max_size=80))
def test_nothing_else_is_a_name(text: str):
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789-")
    well_formed = 0 < len(text) <= NAME_MAX and set(text) <= allowed and text[0] != "-" and text[-1] != "-"
    assert is_name(text) == well_formed


def test_a_near_word_is_suggested_and_a_far_one_is_not():
    known = ["min_nodes", "max_nodes", "cooldown_period"]
    assert nearest("max_node", known) == "max_nodes"
    assert did_you_mean("cooldwn_period", known) == 'did you mean "cooldown_period"?'
    assert did_you_mean("zzz", known) == "known: cooldown_period, max_nodes, min_nodes"
    assert did_you_mean("zzz", [f"key{n}" for n in range(50)]) == ""


@pytest.mark.attack("costly-names")
def test_a_wrong_name_among_very_many_is_answered_quickly():
    known = [f"job-{number:06}-of-a-user-with-a-long-name" for number in range(100_000)]
    begun = time.process_time()
    assert nearest("job-050000-of-a-user-with-a-long-nam", known) == known[50_000]
    assert nearest("zzz", known) is None
    # Compared with all of them, it takes several seconds.
    assert time.process_time() - begun < 1


def test_suggestions_ignore_case_but_keep_the_right_spelling():
    assert nearest("h100", ["A100", "H100"]) == "H100"
