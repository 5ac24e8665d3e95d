"""No secret, no escape sequence and no gigabyte reaches the evidence."""

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from neorion.conformance.decide.redact import ITEMS_MAX, REMOVED, TEXT_MAX, redacted, redacted_text

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "text",
    [
        f"token {JWT}",
        "Authorization: Bearer abcdefghijklmnop",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
        "AKIAABCDEFGHIJKLMNOP",
    ],
)
def test_a_secret_in_a_text_is_removed(text: str):
    kept = redacted_text(text)
    assert REMOVED in kept
    assert not any(part in kept for part in (JWT, "abcdefghijklmnop", "abc\n", "AKIAABCDEFGHIJKLMNOP"))


def test_a_secret_loses_its_data_whatever_it_is_called():
    kept = redacted({"kind": "Secret", "data": {"anything": "c2VjcmV0"}, "metadata": {"name": "x"}})
    assert kept == {"kind": "Secret", "data": REMOVED, "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    "key", ["token", "password", "dbPassword", "clientSecret", "client-key-data", "apiKey"]
)
def test_a_field_of_a_secret_name_is_removed(key: str):
    assert redacted({"deep": [{key: "x"}]}) == {"deep": [{key: REMOVED}]}


def test_what_names_a_secret_stays():
    assert redacted({"secretName": "x", "tokenPath": "/y"}) == {"secretName": "x", "tokenPath": "/y"}


def test_large_answers_are_cut():
    assert len(redacted_text("x" * 10_000_000)) < TEXT_MAX + 100
    assert len(redacted(list(range(100_000)))) == ITEMS_MAX + 1  # pyright: ignore[reportArgumentType] -- a list stays one


@hypothesis.given(st.text())
def test_no_control_character_is_kept(text: str):
    assert not any(ord(each) < 32 and each not in "\t\n" for each in redacted_text(text))


def test_nesting_without_end_is_cut():
    deep: object = "x"
    for _ in range(10_000):
        deep = [deep]
    assert len(msgspec.json.encode(redacted(deep))) < 200
