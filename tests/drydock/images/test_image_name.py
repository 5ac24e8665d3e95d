"""What images are called."""

import pytest

from neorion.drydock.images import ImageName
from neorion.keel.base import Invalid


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("python:3.11-slim", "docker.io/library/python:3.11-slim"),
        ("team/trainer:dev", "docker.io/team/trainer:dev"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("ghcr.io/team/trainer", "ghcr.io/team/trainer:latest"),
        ("localhost/pause:1", "localhost/pause:1"),
        ("localhost:5000/a/b:c", "localhost:5000/a/b:c"),
    ],
)
def test_short_names_mean_what_they_mean_everywhere(text: str, full: str):
    assert str(ImageName.parse(text)) == full
    assert ImageName.parse(full) == ImageName.parse(text)


@pytest.mark.parametrize("text", ["", "Upper", "a//b", "a:", ":tag", "a b", "-a", "a/../b"])
def test_what_is_no_name_is_refused(text: str):
    with pytest.raises(Invalid, match="not a valid name of an image"):
        ImageName.parse(text)
