"""Which images a Dockerfile starts from."""

import pytest

from neorion.drydock.images.dockerfile import bases
from neorion.keel.base import Invalid

HUB = "docker.io/library"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("FROM python:3.11-slim\n", [f"{HUB}/python:3.11-slim"]),
        ("from debian AS base\nRUN true\nFROM base\n", [f"{HUB}/debian:latest"]),
        ("FROM scratch\nCOPY x /\n", []),
        ("FROM --platform=linux/amd64 debian:12\n", [f"{HUB}/debian:12"]),
        ("ARG BASE=debian:12\nFROM ${BASE}\n", [f"{HUB}/debian:12"]),
        ("FROM ${BASE:-busybox}\n", [f"{HUB}/busybox:latest"]),
        ("FROM debian AS a\nFROM busybox\nCOPY --from=a /x /x\nCOPY --from=0 /y /y\n", [f"{HUB}/debian:latest", f"{HUB}/busybox:latest"]),
        ("FROM busybox\nCOPY --from=ghcr.io/astral/uv:1 /uv /uv\n", [f"{HUB}/busybox:latest", "ghcr.io/astral/uv:1"]),
        ("# FROM nothing\nFROM \\\n  busybox\n", [f"{HUB}/busybox:latest"]),
        ("FROM busybox\nRUN echo FROM here\n", [f"{HUB}/busybox:latest"]),
    ],
)  # fmt: skip
def test_bases_are_found(text: str, names: list[str]):
    assert bases(text, {}) == names


def test_the_builds_arguments_win_over_the_files():
    assert bases("ARG BASE=debian\nFROM $BASE\n", {"BASE": "python:3.11"}) == [f"{HUB}/python:3.11"]


def test_a_base_that_nobody_has_given_is_named_as_it_is_written():
    with pytest.raises(Invalid, match=r'"\$BASE" is not a valid name of an image'):
        bases("ARG BASE\nFROM $BASE\n", {})
