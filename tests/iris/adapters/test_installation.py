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
    return loads(text, ClusterFile, {}, with_secrets=False)


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


def two_controllers(name: str) -> tuple[ClusterFile, str]:
    text = (FILES / name).read_text()
    for platform in ("kubernetes", "coreweave"):
        text = text.replace(
            f"controller:\n  {platform}: {{}}",
            f"controller:\n  {platform}: {{ replicas: 2, storage_class: shared }}",
        )
    text += "storage: { database: '${IRIS_DATABASE}' }\n"
    return read(text), text


def test_of_two_controllers_the_service_reaches_the_one_that_leads():
    file, text = two_controllers("kubernetes.yaml")
    made = manifests(file, text)
    deployment = of_kind(made, "Deployment")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["type"] == "RollingUpdate"
    [container] = deployment["template"]["spec"]["containers"]
    assert container["command"][-1] == "--standby"
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert {"secretRef": {"name": "iris-controller-env", "optional": True}} in container["envFrom"]
    # Both write logs and read the keys.
    claim = of_kind(made, "PersistentVolumeClaim")["spec"]
    assert (claim["accessModes"], claim["storageClassName"]) == (["ReadWriteMany"], "shared")
    budget = of_kind(made, "PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


def test_one_controller_is_replaced_only_after_it_has_ended():
    text = (FILES / "kubernetes.yaml").read_text()
    deployment = of_kind(manifests(read(text), text), "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert "--standby" not in deployment["template"]["spec"]["containers"][0]["command"]


def test_two_controllers_with_sqlite_are_refused():
    text = (FILES / "kubernetes.yaml").read_text().replace("kubernetes: {}", "kubernetes: { replicas: 2 }", 1)
    with pytest.raises(Invalid, match="SQLite on a volume serves one controller") as refused:
        manifests(read(text), text)
    assert refused.value.code == "iris.replicas_store"
    assert "storage.database: ${IRIS_DATABASE}" in refused.value.hint


@pytest.mark.parametrize("host", ["db", "${DB_HOST}", "${DB_HOST:-db}"])
def test_a_password_in_the_cluster_file_is_refused(host: str):
    text = (FILES / "kubernetes.yaml").read_text()
    text += f"storage: {{ database: 'postgresql://user:secret@{host}/iris' }}\n"
    with pytest.raises(Invalid) as refused:
        manifests(read(text), text)
    assert refused.value.code == "iris.database_in_file"
    assert "user:secret" not in str(refused.value) + refused.value.hint


@pytest.mark.parametrize("database", ["${IRIS_DATABASE}", "postgresql://iris:${PASSWORD}@db/iris"])
def test_a_database_whose_password_is_a_reference_needs_no_variable_here(database: str):
    text = (FILES / "kubernetes.yaml").read_text() + f"storage: {{ database: '{database}' }}\n"
    assert of_kind(manifests(read(text), text), "ConfigMap")["data"]["config.yaml"] == text


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
