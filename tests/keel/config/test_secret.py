import json
import pickle

import pytest
from pydantic import TypeAdapter, ValidationError

from neorion.keel.config import InvalidConfig, Model, SecretValue, loads

CANARY = "hunter2"


class Login(Model):
    user: str
    token: SecretValue


def test_a_secret_shows_itself_only_when_asked():
    login = loads(f"user: ada\ntoken: {CANARY}", Login, {})
    assert login.token.reveal() == CANARY
    shown = f"{login} {login!r} {login.token} {login.token!r} {login.token:>20} {login.model_dump()}"
    shown += login.model_dump_json() + json.dumps(login.model_dump(mode="json")) + str(vars(login))
    assert CANARY not in shown
    assert json.loads(login.model_dump_json())["token"] == "(secret)"


def test_a_secret_is_equal_to_the_same_secret_alone():
    assert SecretValue("a") == SecretValue("a")
    assert SecretValue("a") != SecretValue("b")
    assert SecretValue("a") != "a"
    assert len({SecretValue("a"), SecretValue("a"), SecretValue("b")}) == 2


@pytest.mark.parametrize("form", [f"[{CANARY}]", f"{{x: {CANARY}}}", "12345678", f"{CANARY}\nusr: {CANARY}"])
def test_a_refused_secret_is_not_told(form: str):
    with pytest.raises(InvalidConfig) as caught:
        loads(f"user: ada\ntoken: {form}", Login, {})
    told = f"{caught.value!r} {caught.value.findings}"
    assert CANARY not in told
    assert "12345678" not in told


def test_a_model_made_in_code_takes_a_secret_too():
    assert Login(user="a", token=SecretValue("b")).token == SecretValue("b")
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Login).validate_python({"user": 1, "token": CANARY.encode()})
    assert CANARY not in str(caught.value)


def test_a_secret_travels_between_processes():
    assert pickle.loads(pickle.dumps(SecretValue("a"))) == SecretValue("a")  # noqa: S301 -- our own bytes
