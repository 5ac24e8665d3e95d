"""The saving by servers that stop when nobody uses them."""

import pytest

from neorion.keel.clock import seeded_rng
from tests.sim.office_world import month, people

# The least that the document of the dev servers promises.
SAVING = 0.3


@pytest.mark.parametrize(("users", "days"), [(12, 7), pytest.param(200, 30, marks=pytest.mark.slow)])
@pytest.mark.timeout(1800)
def test_servers_stop_outside_office_hours_and_never_under_a_user(
    users: int, days: int, capsys: pytest.CaptureFixture[str]
):
    account = month(people(seeded_rng(1), users, days), days)
    with capsys.disabled():
        print(f"\n{account.report(users)}")  # noqa: T201 -- how the saving comes about
    assert account.saving > SAVING
    assert account.stopped_in_use == []
    assert account.running > account.used
