"""Names that are made for jobs without one, and below whom they stand."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from neorion.iris.client.endpoint import local_cluster_endpoint, resolve_endpoint
from neorion.iris.client.job_names import generate_job_name
from neorion.iris.model import JobName
from neorion.iris.model.tokens import token_file
from neorion.keel.clock import SystemIds


@given(st.text(max_size=100))
def test_a_made_name_is_a_name_whatever_it_was_made_of(stem: str):
    name = generate_job_name(stem, SystemIds())
    assert JobName(f"/ann/{name}").last == name


def test_a_name_made_for_a_key_is_the_same_again_and_another_for_another():
    named = [generate_job_name("map", SystemIds(), key) for key in ("nightly", "nightly", "weekly")]
    assert named[0] == named[1] != named[2]
    assert JobName(f"/ann/{named[0]}").last.startswith("map-")


def test_jobs_stand_below_whom_the_caller_names_or_the_environment():
    task = {
        "IRIS_ATTEMPT_UID": "a",
        "IRIS_JOB_NAME": "/ann/job",
        "IRIS_CONTROLLER": "http://c:1",
        "IRIS_TOKEN": "t",
    }
    assert resolve_endpoint("http://c:1", None, "", {"IRIS_USER": "ada"}).prefix == "/ada"
    assert resolve_endpoint("http://c:1", None, "bob", {"IRIS_USER": "ada"}).prefix == "/bob"
    assert resolve_endpoint("http://c:1", None, "", {"IRIS_USER": "ada"} | task).prefix == "/ann/job"


def test_a_cluster_of_ones_own_is_shown_the_token_it_left_and_no_other(tmp_path: Path):
    env = {"XDG_STATE_HOME": str(tmp_path), "IRIS_TOKEN": "of the lab", "IRIS_USER": "ada"}
    assert local_cluster_endpoint("http://127.0.0.1:1234", env).token is None
    left = Path(token_file(env, 1234))
    left.parent.mkdir(parents=True)
    left.write_text("of this one")
    found = local_cluster_endpoint("http://127.0.0.1:1234", env)
    assert (found.token, found.prefix) == ("of this one", "/ada")


def test_an_address_is_the_same_with_and_without_a_slash_at_its_end(tmp_path: Path):
    env = {"XDG_STATE_HOME": str(tmp_path)}
    left = Path(token_file(env, 1234))
    left.parent.mkdir(parents=True)
    left.write_text("left here")
    assert resolve_endpoint("http://localhost:1234/", None, "ada", env) == resolve_endpoint(
        "http://localhost:1234", None, "ada", env
    )
    assert resolve_endpoint("http://localhost:1234/", None, "ada", env).token == "left here"
