"""Kubeconfig files as kubectl reads them, and pods that know their cluster."""

from base64 import b64encode, encodebytes
from pathlib import Path

import pytest
import yaml

from neorion.keel.base import Error, Invalid, NotFound
from neorion.keel.kube.client import (
    CaBundle,
    ClientCertificate,
    ClusterConfig,
    ExecPlugin,
    Impersonation,
    StaticToken,
    TokenFile,
    cluster_of_pod,
    find_cluster,
    kubeconfig_paths,
    read_kubeconfig,
)

SERVER = "https://cluster.example:6443"


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def document(user: dict[str, object] | None = None, **cluster: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "home",
        "contexts": [{"name": "home", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}],
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "preferences": {},
    }


def written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def cluster_in(path: Path, content: object) -> ClusterConfig:
    return read_kubeconfig([written(path, content)]).cluster()


def test_a_file_with_everything_inline(tmp_path: Path):
    user: dict[str, object] = {
        "client-certificate-data": b64("cert"),
        "client-key-data": b64("key"),
        "token": "t",
        "as": "ann",
        "as-groups": ["devs"],
    }
    content = document(user, **{"certificate-authority-data": b64("ca"), "tls-server-name": "kube"})
    assert cluster_in(tmp_path / "config", content) == ClusterConfig(
        SERVER,
        CaBundle("ca", "kube"),
        ClientCertificate("cert", "key"),
        StaticToken("t"),
        "mine",
        acting_as=Impersonation("ann", ("devs",)),
    )


def test_data_may_be_broken_into_lines(tmp_path: Path):
    pem = "ca" * 100
    content = document(None, **{"certificate-authority-data": encodebytes(pem.encode()).decode()})
    assert cluster_in(tmp_path / "config", content).trust == CaBundle(pem)


def test_files_are_found_beside_the_kubeconfig_that_names_them(tmp_path: Path):
    for name in ("ca", "cert", "key"):
        written(tmp_path / "pki" / name, name)
    user: dict[str, object] = {
        "client-certificate": "pki/cert",
        "client-key": "pki/key",
        "tokenFile": "pki/token",
        "token": "older than the file",
    }
    found = cluster_in(tmp_path / "config", document(user, **{"certificate-authority": "pki/ca"}))
    pki = tmp_path / "pki"
    assert found.trust == CaBundle("ca", file=pki / "ca")
    assert found.certificate == ClientCertificate("cert", "key", (pki / "cert", pki / "key"))
    assert found.source == TokenFile(tmp_path / "pki" / "token")


def test_of_several_files_the_first_that_names_a_thing_counts(tmp_path: Path):
    first = written(
        tmp_path / "a" / "config",
        {
            "clusters": [{"name": "c", "cluster": {"server": "https://first"}}],
            "contexts": [{"name": "home", "context": {"cluster": "c", "user": "u", "namespace": "first"}}],
        },
    )
    second = written(tmp_path / "b" / "config", document({"tokenFile": "token"}))
    config = read_kubeconfig([first, tmp_path / "not there", second])
    found = config.cluster()
    assert (found.server, found.namespace) == ("https://first", "first")
    # What a user's entry names lies beside the file of that entry.
    assert found.source == TokenFile(tmp_path / "b" / "token")


def test_the_paths_are_kubectls():
    assert kubeconfig_paths({"KUBECONFIG": "/a:/b:"}) == [Path("/a"), Path("/b")]
    assert kubeconfig_paths({"HOME": "/home/ann"}) == [Path("/home/ann/.kube/config")]


def test_a_plugin_with_all_it_may_say(tmp_path: Path):
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "bin/login",
        "args": ["--cluster", "c"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": "install it",
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    found = cluster_in(tmp_path / "config", document({"exec": plugin}, extensions=extensions))
    assert isinstance(found.source, ExecPlugin)
    assert found.source.command == (str(tmp_path / "bin/login"), "--cluster", "c")
    assert found.source.env == {"A": "1"}
    assert found.source.cluster_info is not None
    assert found.source.cluster_info["server"] == SERVER
    assert found.source.cluster_info["config"] == {"audience": "x"}


def test_a_plugin_without_a_slash_is_looked_up_in_the_path(tmp_path: Path):
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login"}
    found = cluster_in(tmp_path / "config", document({"exec": plugin}))
    assert isinstance(found.source, ExecPlugin)
    assert (found.source.command, found.source.cluster_info) == (("login",), None)


def test_a_context_is_chosen_by_name_and_a_wrong_one_gets_a_suggestion(tmp_path: Path):
    config = read_kubeconfig([written(tmp_path / "config", document())])
    assert config.cluster("home").server == SERVER
    with pytest.raises(NotFound) as refused:
        config.cluster("hom")
    assert refused.value.code == "kube.config_entry"
    assert "home" in refused.value.hint


EXEC: dict[str, object] = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("{", "kube.config_form"),
        ("clusters: 7", "kube.config_form"),
        (document() | {"current-context": ""}, "kube.no_context"),
        (document() | {"clusters": None}, "kube.config_entry"),
        (document(server="cluster.example"), "kube.server"),
        (document({"client-certificate-data": b64("cert")}), "kube.half_certificate"),
        (document({"client-certificate-data": "%%%", "client-key-data": "x"}), "kube.config_data"),
        (document({"client-key": "not/there"}), "kube.config_path"),
        (document({"auth-provider": {"name": "gcp"}}), "kube.old_login"),
        (document({"as-groups": ["viewers"]}), "kube.impersonation"),
        (document({"as-uid": "7"}), "kube.impersonation"),
        (document({"username": "ann", "password": "x"}), "kube.old_login"),
        (document({"exec": EXEC | {"apiVersion": "v1alpha1"}}), "kube.exec_version"),
        (document({"exec": EXEC | {"interactiveMode": "Always"}}), "kube.exec_interactive"),
    ],
)
def test_what_cannot_work_is_refused_with_a_code_and_a_hint(tmp_path: Path, content: object, code: str):
    with pytest.raises(Error) as refused:
        cluster_in(tmp_path / "config", content)
    assert refused.value.code == code
    assert refused.value.hint


def test_a_malformed_file_does_not_spill_its_secrets(tmp_path: Path):
    with pytest.raises(Invalid) as refused:
        cluster_in(tmp_path / "config", "users:\n- name: u\n  user: {token: hunter2: x}\n")
    assert refused.value.code == "kube.config_form"
    assert "line 3" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def account(folder: Path) -> Path:
    for name, text in (("token", "t"), ("ca.crt", "ca"), ("namespace", "mine\n")):
        written(folder / name, text)
    return folder


def test_a_pod_finds_its_own_cluster(tmp_path: Path):
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert cluster_of_pod(environ, account(tmp_path)) == ClusterConfig(
        "https://10.96.0.1:6443",
        CaBundle("ca", file=tmp_path / "ca.crt"),
        source=TokenFile(tmp_path / "token"),
        namespace="mine",
    )
    assert cluster_of_pod({"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path).server == "https://[fd00::1]:443"


def test_outside_of_a_pod_there_is_no_such_cluster(tmp_path: Path):
    for environ in ({}, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}):
        with pytest.raises(NotFound) as refused:
            cluster_of_pod(environ, tmp_path)
        assert refused.value.code == "kube.no_pod"


@pytest.mark.parametrize("name", ["token", "ca.crt", "namespace"])
def test_half_an_account_is_none(tmp_path: Path, name: str):
    (account(tmp_path) / name).unlink()
    with pytest.raises(NotFound) as refused:
        cluster_of_pod({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, tmp_path)
    assert refused.value.code == "kube.no_pod"


def test_a_cluster_is_found_where_kubectl_would_find_it(tmp_path: Path):
    file = written(tmp_path / ".kube" / "config", document())
    for found in (
        find_cluster(file, environ={}),
        find_cluster(environ={"KUBECONFIG": str(file)}),
        find_cluster(environ={"HOME": str(tmp_path)}, context="home"),
    ):
        assert found.server == SERVER
    with pytest.raises(NotFound) as refused:
        find_cluster(tmp_path / "nowhere", environ={})
    assert refused.value.code == "kube.no_config"
