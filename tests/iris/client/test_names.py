"""Names that are made for jobs without one."""

from hypothesis import given
from hypothesis import strategies as st

from neorion.iris.client.names import made_name
from neorion.iris.model import JobName
from neorion.keel.clock import SystemIds


@given(st.text(max_size=100))
def test_a_made_name_is_a_name_whatever_it_was_made_of(stem: str):
    name = made_name(stem, SystemIds())
    assert JobName(f"/ann/{name}").last == name
