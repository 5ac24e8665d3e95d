"""What an SSH client may ask for, to the letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.decide.login import Login, parse_login, server_meant
from neorion.keel.base import is_name


@pytest.mark.parametrize(
    ("text", "login"),
    [("ann", Login("ann")), ("ann+mydev", Login("ann", "mydev")), ("a-1+b-2", Login("a-1", "b-2"))],
)
def test_a_login_names_a_user_and_perhaps_a_server(text: str, login: Login):
    assert parse_login(text) == login


@pytest.mark.parametrize(
    "text",
    ["", "+", "ann+", "+mydev", "ann+a+b", "Ann", "ann smith", "ann@host", "-ann", "ann-", "a" * 60, "ann+" + "a" * 60, "ann\n", "ann\x00", "ann/../bob", "ａｎｎ", "ann+my.dev"],
)  # fmt: skip
def test_every_other_text_is_nobody(text: str):
    assert parse_login(text) is None


@given(st.text())
def test_whatever_is_understood_is_made_of_names(text: str):
    login = parse_login(text)
    assert login is None or (is_name(login.user) and (not login.server or is_name(login.server)))


@pytest.mark.parametrize(
    ("login", "host", "server"),
    [
        ("ann", "mydev", "mydev"),
        ("ann", "mydev.dev-ann", "mydev"),
        ("ann", "mydev.dev-bob", None),
        ("ann", "10.0.0.1", None),
        ("ann", "169.254.169.254", None),
        ("ann", "kubernetes.default.svc", None),
        ("ann", "mydev.", None),
        ("ann", "", None),
        ("ann+mydev", "localhost", "mydev"),
        ("ann+mydev", "127.0.0.1", "mydev"),
        ("ann+mydev", "::1", "mydev"),
        ("ann+mydev", "mydev", "mydev"),
        ("ann+mydev", "other", None),
    ],
)
def test_a_forward_leads_to_a_server_of_the_user_or_nowhere(login: str, host: str, server: str | None):
    known = parse_login(login)
    assert known is not None
    assert server_meant(known, host) == server
