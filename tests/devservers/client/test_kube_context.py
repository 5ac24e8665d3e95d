from pathlib import Path

import pytest

from neorion.devservers.client import own_namespace, resolve_context
from neorion.keel.base import Invalid

CONFIG = """
current-context: {current}
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
contexts:
- {{name: bare, context: {{cluster: c, user: u}}}}
- {{name: usual, context: {{cluster: c, user: u, namespace: default}}}}
- {{name: team, context: {{cluster: c, user: u, namespace: team-a}}}}
users: [{{name: u, user: {{token: t}}}}]
"""


@pytest.mark.parametrize(
    ("given", "current", "found"),
    [
        ("mine", "team", "mine"),
        ("", "team", "team-a"),
        ("", "bare", "dev-ann"),
        ("", "usual", "dev-ann"),
        ("default", "team", "default"),
    ],
)
def test_the_namespace_is_the_one_given_or_the_kubeconfigs_or_ones_own(
    tmp_path: Path, given: str, current: str, found: str
):
    config = tmp_path / "config"
    config.write_text(CONFIG.format(current=current))
    place = resolve_context(given, "", config, {"USER": "ann"})
    assert (place.namespace, place.cluster.server) == (found, "https://127.0.0.1:1")


@pytest.mark.parametrize(
    ("user", "namespace"),
    [
        ("ann", "dev-ann"),
        ("Ann.Smith@company.com", "dev-ann-smith"),
        ("a" * 80, "dev-" + "a" * 59),
        ("__", "dev"),
    ],
)
def test_every_user_has_a_namespace_that_can_be(user: str, namespace: str):
    assert own_namespace(user) == namespace


def test_a_namespace_that_cannot_be_is_refused_before_anything_is_read():
    with pytest.raises(Invalid):
        resolve_context("Not/One", kubeconfig=Path("/nonexistent"))
