import pickle
import traceback

import pytest

from neorion.keel.base import (
    FAMILIES,
    Denied,
    Duration,
    Error,
    Invalid,
    NoCapacity,
    QuotaExceeded,
    Retry,
    Unauthenticated,
)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_says_one_sentence_and_crosses_processes_whole(family: type[Error]):
    error = family("some.code", "It broke.", hint="Mend it.")
    if isinstance(error, Retry):
        error.after = Duration.of(seconds=3)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own bytes
    assert type(again) is family
    assert str(again) == "It broke."
    assert vars(again) == vars(error)


def test_families_have_one_name_each_and_known_statuses():
    assert {name: (f.http_status, f.exit_code) for name, f in FAMILIES.items()} == {
        "retry": (503, 6),
        "deadline": (504, 124),
        "conflict": (409, 5),
        "terminal": (500, 1),
        "no_capacity": (503, 7),
        "quota_exceeded": (429, 8),
        "not_found": (404, 3),
        "denied": (403, 4),
        "unauthenticated": (401, 4),
        "invalid": (400, 2),
    }
    assert all(name == family.family for name, family in FAMILIES.items())


def test_a_stranger_is_denied_too():
    assert issubclass(Unauthenticated, Denied)


def test_scopes_say_where():
    assert NoCapacity("a.b", "None.", scope="us-east-1").scope == "us-east-1"
    assert QuotaExceeded("a.b", "Full.", scope="team-a").scope == "team-a"


def test_who_meets_an_error_in_a_traceback_reads_what_to_do():
    told = "".join(
        traceback.format_exception(Invalid("a.b", '"gpus" is no resource.', hint='did you mean "gpu"?'))
    )
    assert told.endswith('"gpus" is no resource.\nhint: did you mean "gpu"?\n')
    assert traceback.format_exception(Invalid("a.b", "No.")) == ["neorion.keel.base.errors.Invalid: No.\n"]
