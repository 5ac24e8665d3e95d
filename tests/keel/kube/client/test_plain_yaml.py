"""The small reader never says anything that the library for all of YAML does not say."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.kube.client.plain_yaml import NotPlain, read_plain

KIND = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    server: https://127.0.0.1:6443
  name: kind-kind
contexts:
- context:
    cluster: kind-kind
    user: kind-kind
  name: kind-kind
current-context: kind-kind
kind: Config
preferences: {}
users:
- name: kind-kind
  user:
    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo=
"""
EKS = """\
apiVersion: v1
kind: Config
clusters:
  - name: arn:aws:eks:us-east-1:000000000000:cluster/gpus
    cluster: {}
users:
  - name: "me"
    user:
      exec:
        apiVersion: client.authentication.k8s.io/v1beta1
        command: aws
        args:
          - --region
          - us-east-1
          - 'eks'
          - get-token
        env: null
        provideClusterInfo: false
"""
NESTED = "a:\n- - b\n  - c\n-   d: e\n    f:\n- g\n"


def library(text: str) -> object:
    return yaml.safe_load(text)


@pytest.mark.parametrize("text", [KIND, EKS, NESTED], ids=["kind", "eks", "nested"])
def test_what_programs_write_is_read(text: str):
    assert read_plain(text) == library(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1",
        "a: 2026-11-16",
        "a: yes",
        "a: ~",
        "On: b",
        "a: b # c",
        "a: {b: c}",
        "a: &b c",
        "a: |\n  b",
        "a: b\n  c",
        "a: b\n- c",
        "a: b: c",
        "a: b c",
        'a: "\\n"',
        "a: 'b''c'",
        "a: b\na: c",
        "a:\tb",
        "a: é",
        "--- \na: b",
        " a: b\nc: d",
        "a:\n  b: c\n d: e",
        "- a\nb: c",
        "-",
        "a:\n- ",
    ],
)
def test_everything_else_is_left_to_the_library(text: str):
    with pytest.raises(NotPlain):
        read_plain(text)


_TEXTS = st.one_of(
    st.sampled_from(
        ["v1", "https://h:1", "true", "No", "null", "~", "1", "1e3", ".inf", "-", "--", "a: b", "=", "<<"]
    ),
    st.from_regex(r"[A-Za-z0-9+/=_.:@ '\"#{}\[\]&*!|>%-]{0,8}", fullmatch=True),
)
_DATA = st.recursive(
    st.one_of(_TEXTS, st.booleans(), st.none(), st.integers(-9, 9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@given(data=_DATA, indent=st.sampled_from([2, 4]))
def test_whatever_is_dumped_is_read_the_same_or_not_at_all(data: object, indent: int):
    _agrees(yaml.safe_dump(data, default_flow_style=False, indent=indent))


@given(
    lines=st.lists(
        st.sampled_from([line for text in (KIND, EKS, NESTED) for line in text.splitlines()]), max_size=8
    ),
    cuts=st.lists(st.tuples(st.integers(0, 200), st.sampled_from(list(" -:a1'\"\n#"))), max_size=4),
)
def test_whatever_is_torn_and_patched_is_read_the_same_or_not_at_all(
    lines: list[str], cuts: list[tuple[int, str]]
):
    text = "\n".join(lines)
    for where, what in cuts:
        at = where % (len(text) + 1)
        text = text[:at] + what + text[at:]
    _agrees(text)


def _agrees(text: str) -> None:
    try:
        found = read_plain(text)
    except NotPlain:
        return
    assert found == library(text)
