"""What `iris cluster up` applies: the manifests of the project, for any cluster file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.iris.adapters.installation import manifests, token_path
from neorion.iris.adapters.installation.manifests import CLUSTER_FILE
from neorion.keel.base import Invalid
from neorion.keel.config import loads

FILES = Path(__file__).parent.parent / "cluster_files"
FOLDER = Path(__file__).parents[3] / "infra" / "coreweave" / "k8s"


def read(text: str) -> ClusterFile:
    return loads(text, ClusterFile, {})


def written() -> list[dict[str, Any]]:
    """The manifests for kubectl, in the order of their Kustomization."""
    names = yaml.safe_load((FOLDER / "Kustomization").read_text())["resources"]
    return [one for name in names for one in yaml.safe_load_all((FOLDER / name).read_text())]


def of_kind(made: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [one for one in made if one["kind"] == kind]
    return found


def test_the_folder_for_kubectl_holds_what_the_command_applies():
    text = of_kind(written(), "ConfigMap")["data"]["config.yaml"]
    made = manifests(read(text), text)
    notes = of_kind(made, "Deployment")["spec"]["template"]["metadata"].pop("annotations")
    assert list(notes) == [CLUSTER_FILE]
    assert made == written()


def test_the_folder_holds_the_documents_six_files():
    assert sorted(path.name for path in FOLDER.glob("*.yaml")) == [
        "configmap.yaml",
        "controller-deployment.yaml",
        "controller-nodepool.yaml",
        "controller-service.yaml",
        "namespace.yaml",
        "rbac.yaml",
    ]


def test_another_cluster_buys_no_machine_and_gives_no_rights_beyond_the_namespace():
    text = (FILES / "kubernetes.yaml").read_text()
    made = manifests(read(text), text)
    assert {one["kind"] for one in made}.isdisjoint({"NodePool", "ClusterRole", "ClusterRoleBinding"})
    assert {one["metadata"].get("namespace", "jobs") for one in made} == {"jobs"}
    spec = of_kind(made, "Deployment")["spec"]["template"]["spec"]
    assert "nodeSelector" not in spec
    assert spec["imagePullSecrets"] == []


def test_another_cluster_file_brings_another_pod():
    text = (FILES / "kubernetes.yaml").read_text()
    changed = text.replace("max_slices: 4", "max_slices: 5")
    first, second = (of_kind(manifests(read(one), one), "Deployment") for one in (text, changed))
    assert first["spec"]["template"]["metadata"] != second["spec"]["template"]["metadata"]


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("namespace: jobs", "namespace: jobs\n    kubeconfig_path: ~/.kube/config", "iris.kubeconfig_path"),
        ("controller:", "storage: { state_dir: /srv/iris }\ncontroller:", "iris.state_dir"),
    ],
)
def test_what_cannot_be_inside_of_a_cluster_is_refused(before: str, after: str, code: str):
    text = (FILES / "kubernetes.yaml").read_text().replace(before, after, 1)
    with pytest.raises(Invalid) as refused:
        manifests(read(text), text)
    assert refused.value.code == code


def test_a_file_for_this_machine_is_refused():
    text = (FILES / "local.yaml").read_text()
    with pytest.raises(Invalid, match="for this machine"):
        manifests(loads(text, ClusterFile, {"ALICE_TOKEN": "one", "BOB_TOKEN": "two"}), text)


def test_the_administrators_token_lies_on_the_volume():
    text = (FILES / "kubernetes.yaml").read_text()
    assert token_path(read(text)) == "/var/lib/iris/.local/state/iris/admin.token"
