"""What a user is given, without a cluster."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neorion.devservers.adapters.users import kubeconfig, login_kubeconfig
from neorion.devservers.decide.manifests import OwnerIdentity, service
from neorion.devservers.decide.tenant import checked_quota, quota_of, tenant_manifests
from neorion.devservers.model import DevServerSpec
from neorion.devservers.model.user import DevServerUserSpec, UserQuota
from neorion.devservers.testing import SETTINGS
from neorion.keel.base import Instant, Invalid
from neorion.keel.kube import ServiceAccountToken
from neorion.keel.kube.client import CaBundle, ClusterConfig, StaticToken, read_kubeconfig
from neorion.keel.kube.client.exec_plugin import run_plugin
from neorion.keel.kube.client.kubeconfig import ExecPlugin

KIT = tenant_manifests("ann", DevServerUserSpec())


def of_kind(kind: str) -> list[Any]:
    return [one for one in KIT if one["kind"] == kind]


def test_the_names_are_those_that_are_documented():
    (space,) = of_kind("Namespace")
    assert space["metadata"]["name"] == "dev-ann"
    assert space["metadata"]["labels"]["devserver.io/user"] == "ann"
    assert space["metadata"]["labels"]["devserver.io/created-by"] == "user-controller"
    assert [one["metadata"]["name"] for one in of_kind("ServiceAccount")] == ["user-ann"]
    assert [one["metadata"]["name"] for one in of_kind("Role")] == ["dev-user"]
    assert {one["metadata"].get("namespace", "dev-ann") for one in KIT} == {"dev-ann"}


def test_the_walls_stand_before_anybody_is_let_in():
    kinds = [one["kind"] for one in KIT]
    walls = {"Namespace", "ResourceQuota", "LimitRange", "NetworkPolicy"}
    assert max(kinds.index(kind) for kind in walls) < kinds.index("ServiceAccount")


def test_a_user_has_no_verb_on_rights_accounts_or_quotas():
    (role,) = of_kind("Role")
    writable = {
        resource
        for rule in role["rules"]
        for resource in rule["resources"]
        if set(rule["verbs"]) - {"get", "list", "watch"}
    }
    assert not writable & {"roles", "rolebindings", "serviceaccounts", "resourcequotas", "devservers/status"}
    assert "*" not in {word for rule in role["rules"] for words in rule.values() for word in words}


def test_an_allowance_is_what_the_quota_says():
    (quota,) = (
        one
        for one in tenant_manifests("ann", DevServerUserSpec(quota=UserQuota(servers=3, cpu="7", gpus=2)))
        if one["kind"] == "ResourceQuota"
    )
    hard = quota["spec"]["hard"]
    assert (hard["count/devservers.devservers.io"], hard["requests.cpu"]) == ("3", "7")
    assert hard["requests.nvidia.com/gpu"] == "2"
    assert hard["services.loadbalancers"] == "0"


def test_no_pod_of_a_user_reaches_nodes_or_the_clouds_metadata():
    (policy,) = of_kind("NetworkPolicy")
    blocks = [to["ipBlock"] for rule in policy["spec"]["egress"] for to in rule["to"] if "ipBlock" in to]
    assert [block["cidr"] for block in blocks] == ["0.0.0.0/0"]
    assert {"169.254.0.0/16", "10.0.0.0/8"} <= set(blocks[0]["except"])


@pytest.mark.parametrize("tools", ["", "tools:1"])
def test_ssh_is_let_in_where_it_listens(tools: str):
    """A network policy sees the port of the pod, whatever the Service in front of it is called by."""
    (policy,) = of_kind("NetworkPolicy")
    open_ports = {port["port"] for rule in policy["spec"]["ingress"] for port in rule.get("ports", ())}
    made = service(
        OwnerIdentity("mydev", "dev-ann", "1"),
        DevServerSpec(flavor="x"),
        replace(SETTINGS, tools_image=tools),
    )
    assert {one["targetPort"] for one in made["spec"]["ports"]} <= open_ports


@pytest.mark.parametrize("kept", [ServiceAccountToken("secret", Instant(0)), Path("/shared/token")])
def test_a_kubeconfig_has_the_way_of_the_administrator_and_the_rights_of_the_user(
    kept: ServiceAccountToken | Path,
):
    cluster = ClusterConfig(
        "https://api.example:6443", CaBundle(ca="PEM"), source=StaticToken("the administrator's")
    )
    body = kubeconfig("ann", cluster, kept)
    assert body["clusters"][0]["cluster"] == {
        "server": "https://api.example:6443",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
    }
    known = {"token": "secret"} if isinstance(kept, ServiceAccountToken) else {"tokenFile": "/shared/token"}
    assert body["users"] == [{"name": "user-ann", "user": known}]
    assert body["contexts"][0]["context"]["namespace"] == "dev-ann"
    assert "the administrator's" not in str(body)


def test_a_quota_says_what_the_user_was_given():
    given = UserQuota(servers=1_000, cpu="7", memory="1Gi", gpus=0, storage="3Ti")
    (hard,) = (
        one["spec"]["hard"]
        for one in tenant_manifests("ann", DevServerUserSpec(quota=given))
        if one["kind"] == "ResourceQuota"
    )
    # As the API writes it.
    assert quota_of({**hard, "count/devservers.devservers.io": "1k"}) == given
    assert quota_of({}) == UserQuota()


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpu": "abc"},
        {"cpu": ""},
        {"cpu": "-3"},
        {"memory": "12 Gi"},
        {"memory": "12GB"},
        {"storage": "-1"},
        {"gpus": 10**20},
    ],
)
def test_what_is_no_amount_is_refused_before_anything_is_made(wrong: dict[str, Any]):
    with pytest.raises(Invalid) as refused:
        checked_quota(UserQuota(**wrong))
    assert refused.value.code == "devservers.allowance"
    assert f"--{next(iter(wrong))}" in refused.value.sentence


def test_a_kubeconfig_by_a_login_holds_a_command_and_no_secret():
    cluster = ClusterConfig(server="https://api.example", source=StaticToken("secret"))
    config = login_kubeconfig("ann", cluster, ["aws", "eks", "get-token", "--cluster-name", "dev"])
    [user] = config["users"]
    assert user["name"] == "devservers:ann"
    assert user["user"]["exec"]["args"] == ["eks", "get-token", "--cluster-name", "dev"]
    assert config["contexts"][0]["context"] == {
        "cluster": "default-cluster",
        "namespace": "dev-ann",
        "user": "devservers:ann",
    }
    assert "secret" not in str(config)


@pytest.mark.anyio
async def test_our_own_client_runs_the_command_of_a_login(tmp_path: Path):
    plugin = tmp_path / "login"
    status = {"token": "of-ann"}
    told = {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": status}
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\n")
    plugin.chmod(0o700)
    cluster = ClusterConfig(server="https://api.example", source=StaticToken("secret"))
    file = tmp_path / "config"
    file.write_text(json.dumps(login_kubeconfig("ann", cluster, [str(plugin)])))
    read = read_kubeconfig([file]).cluster()
    assert read.namespace == "dev-ann"
    assert isinstance(read.source, ExecPlugin)
    assert (await run_plugin(read.source)).token == "of-ann"
