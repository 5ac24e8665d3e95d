"""A month of 200 users with office hours: the saving by servers that stop when they are idle, and how it comes about.

Simulated; every stop is decided by the operator's own rules. NEORION_BENCH_USERS says how many users.
"""

import os

from bench.kit import Report
from neorion.keel.clock import seeded_rng
from tests.sim.office_world import month, people

DAYS = 30
# The least saving that the dev servers promise.
SAVING = 0.3


def run(report: Report) -> None:
    users = int(os.environ.get("NEORION_BENCH_USERS", "200"))
    account = month(people(seeded_rng(1), users, DAYS), DAYS)
    print(account.report(users), flush=True)
    if account.stopped_in_use or account.saving <= SAVING:
        raise SystemExit(
            f"{len(account.stopped_in_use)} stops under a user; the goal is a saving of {SAVING:.0%}"
        )
    report.alone(
        "saving by stops, against servers that always run", "of the cost", lambda: account.saving, rounds=1
    )
