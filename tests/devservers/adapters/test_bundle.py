"""What an installation consists of, without a cluster."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from neorion.devservers.adapters.install import KINDS, PART_OF, ImageOverrides, Overlay, bundle, kind_of
from neorion.devservers.app.config import OperatorFile
from neorion.devservers.app.main import app
from neorion.devservers.model.flavor import GPUS
from neorion.keel.base import Invalid
from neorion.keel.config import load

ROOT = Path(__file__).parent.parent.parent.parent
IMAGE = "registry.example/devservers-operator:1"


def whole(overlay: Overlay) -> tuple[Any, ...]:
    return bundle(overlay, ImageOverrides(IMAGE), "fs-1" if overlay is Overlay.AWS else "")


def app_commands() -> set[str]:
    return set(app.commands)


def named(manifests: tuple[Any, ...], kind: str, name: str) -> Any:
    (found,) = (one for one in manifests if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


@pytest.mark.parametrize("overlay", Overlay)
def test_everything_can_be_found_again_and_comes_in_an_order_that_works(overlay: Overlay):
    manifests = whole(overlay)
    label, _, value = PART_OF.partition("=")
    assert all(one["metadata"]["labels"][label] == value for one in manifests)
    places = [KINDS.index(kind_of(one)) for one in manifests]
    assert places == sorted(places)
    assert manifests[0]["kind"] == "CustomResourceDefinition"


@pytest.mark.parametrize("overlay", Overlay)
def test_the_operator_is_two_careful_pods(overlay: Overlay):
    manifests = whole(overlay)
    spec = named(manifests, "Deployment", "devservers-operator")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["replicas"], container["image"]) == (2, IMAGE)
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= container.keys()
    assert pod["affinity"]["podAntiAffinity"]
    budget = named(manifests, "PodDisruptionBudget", "devservers-operator")
    assert budget["spec"]["minAvailable"] == 1


def rules_of(*names: str) -> list[dict[str, list[str]]]:
    roles = [one for one in whole(Overlay.AWS) if one["kind"] in {"Role", "ClusterRole"}]
    chosen = [one for one in roles if not names or one["metadata"]["name"] in names]
    return [rule for one in chosen for rule in one["rules"]]


def test_nobody_may_do_everything():
    rules = rules_of()
    words = {word for rule in rules for field in ("apiGroups", "resources", "verbs") for word in rule[field]}
    assert not words & {"*", "nodes/proxy", "impersonate"}
    for rule in rules:
        # Secrets are made and never read, but for the bastion's own.
        if "secrets" in rule["resources"] and {"get", "list", "watch"} & set(rule["verbs"]):
            assert (rule["verbs"], rule["resourceNames"]) == (["get"], ["devservers-bastion"])
        # Rights are given by name, and tokens for one account.
        if {"roles", "rolebindings", "clusterroles", "serviceaccounts/token"} & set(rule["resources"]):
            assert rule["resourceNames"]
    # Nodes and what is the cluster's own are looked at, and never touched.
    looked_at = {"nodes", "persistentvolumes", "storageclasses"}
    assert {verb for rule in rules if looked_at & set(rule["resources"]) for verb in rule["verbs"]} <= {
        "get",
        "list",
        "watch",
    }


def test_only_the_user_controller_gives_rights():
    others = {one["metadata"]["name"] for one in whole(Overlay.AWS) if one["kind"] in {"Role", "ClusterRole"}}
    others.remove("devservers-user-controller")
    words = {word for rule in rules_of(*others) for field in ("resources", "verbs") for word in rule[field]}
    assert not words & {"roles", "rolebindings", "escalate", "bind", "serviceaccounts/token", "namespaces"}


def test_the_bastion_and_the_user_controller_share_a_pod_and_no_token():
    spec = named(whole(Overlay.LOCAL), "StatefulSet", "devservers-bastion")["spec"]
    pod = spec["template"]["spec"]
    assert (spec["replicas"], pod["automountServiceAccountToken"]) == (2, False)
    containers = {one["name"]: one for one in pod["containers"]}
    assert set(containers) == {"bastion", "user-controller"}
    assert {one["image"] for one in containers.values()} == {IMAGE}
    mounts = {name: {mount["name"] for mount in one["volumeMounts"]} for name, one in containers.items()}
    # The Pod's own account is the user controller's.
    assert "account" not in mounts["bastion"]
    assert pod["serviceAccountName"] == "devservers-user-controller"
    for one in containers.values():
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("images", "console"),
    [
        (ImageOverrides(), "devservers-console:dev"),
        (
            ImageOverrides("registry.example/a/devservers-operator:1"),
            "registry.example/a/devservers-console:1",
        ),
        (ImageOverrides("operator", console="mine/console:3"), "mine/console:3"),
        (ImageOverrides("operator@sha256:00", ssh=False), ""),
    ],
)
def test_consoles_run_the_image_built_beside_the_operators(images: ImageOverrides, console: str):
    spec = named(bundle(Overlay.LOCAL, images), "StatefulSet", "devservers-bastion")["spec"]
    (bastion,) = [one for one in spec["template"]["spec"]["containers"] if one["name"] == "bastion"]
    env = {one["name"]: one.get("value") for one in bastion["env"]}
    assert env["DEVSERVERS_CONSOLE_IMAGE"] == console
    assert "--console-image=$(DEVSERVERS_CONSOLE_IMAGE)" in bastion["args"]


def test_the_logs_of_a_bastion_outlive_its_pod():
    spec = named(whole(Overlay.LOCAL), "StatefulSet", "devservers-bastion")["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    (bastion,) = [one for one in spec["template"]["spec"]["containers"] if one["name"] == "bastion"]
    mounts = {one["name"]: one["mountPath"] for one in bastion["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == "/var/log/devservers"
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_the_cloud_brings_volumes_gpus_and_monitoring():
    manifests = whole(Overlay.AWS)
    classes = {one["metadata"]["name"]: one for one in manifests if one["kind"] == "StorageClass"}
    assert classes["devservers-home"]["parameters"]["type"] == "gp3"
    assert classes["devservers-shared"]["parameters"]["fileSystemId"] == "fs-1"
    assert named(manifests, "DevServerFlavor", "p4d.24xlarge")
    assert named(manifests, "ServiceMonitor", "devservers-operator")
    without = bundle(Overlay.AWS, ImageOverrides(IMAGE))
    assert "devservers-shared" not in {one["metadata"]["name"] for one in without}


@pytest.mark.parametrize("overlay", Overlay)
def test_the_operators_file_is_one_that_the_operator_understands(overlay: Overlay, tmp_path: Path):
    text = named(whole(overlay), "ConfigMap", "devservers-operator")["data"]["operator.yaml"]
    (tmp_path / "operator.yaml").write_text(text)
    file = load(tmp_path / "operator.yaml", OperatorFile, {})
    assert (file.namespace, file.port) == ("devservers-system", 8080)
    assert file.autoscaled is (overlay is Overlay.AWS)


def tools(images: ImageOverrides) -> str:
    """What the operator reads as the image of its tools."""
    (container,) = named(bundle(Overlay.LOCAL, images), "Deployment", "devservers-operator")["spec"][
        "template"
    ]["spec"]["containers"]
    (told,) = (one["value"] for one in container["env"] if one["name"] == "DEVSERVERS_TOOLS_IMAGE")
    return told


@pytest.mark.parametrize(
    ("images", "wanted"),
    [
        (ImageOverrides(), "devserver-tools:dev"),
        (
            ImageOverrides("registry.example:5000/team/devservers-operator:7"),
            "registry.example:5000/team/devserver-tools:7",
        ),
        (ImageOverrides("registry.example:5000/operator"), "registry.example:5000/devserver-tools"),
        (ImageOverrides("operator:7", "mine/tools:3"), "mine/tools:3"),
        (ImageOverrides("operator@sha256:00", "mine/tools:3"), "mine/tools:3"),
        (ImageOverrides("operator@sha256:00", ssh=False), ""),
        (ImageOverrides(ssh=False), ""),
    ],
)
def test_the_tools_for_ssh_are_those_built_beside_the_operator_unless_somebody_says_otherwise(
    images: ImageOverrides, wanted: str, tmp_path: Path
):
    assert tools(images) == wanted
    text = named(bundle(Overlay.LOCAL, images), "ConfigMap", "devservers-operator")["data"]["operator.yaml"]
    (tmp_path / "operator.yaml").write_text(text)
    file = load(tmp_path / "operator.yaml", OperatorFile, {"DEVSERVERS_TOOLS_IMAGE": wanted})
    assert file.orders().settings.tools_image == wanted


def test_tools_that_cannot_be_found_or_are_not_wanted_are_asked_about():
    with pytest.raises(Invalid, match="does not say which tools"):
        bundle(Overlay.LOCAL, ImageOverrides("operator@sha256:00"))
    with pytest.raises(Invalid, match="it is left out"):
        bundle(Overlay.LOCAL, ImageOverrides(tools="mine/tools:3", ssh=False))


def test_what_was_read_once_is_not_changed_by_who_used_it():
    assert bundle(Overlay.LOCAL, ImageOverrides(IMAGE)) != bundle(Overlay.LOCAL)
    assert bundle(Overlay.LOCAL) == bundle(Overlay.LOCAL)


def test_an_image_that_cannot_be_there_is_asked_for():
    with pytest.raises(Invalid, match="registry of your own"):
        bundle(Overlay.AWS)
    with pytest.raises(Invalid, match="for clusters on AWS"):
        bundle(Overlay.LOCAL, efs="fs-1")


def test_a_kind_without_a_place_in_the_order_is_refused():
    with pytest.raises(Invalid, match="no Ingress of networking"):
        kind_of({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"})


def pins(file: str) -> dict[str, str]:
    text = (ROOT / file).read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+) \\$", text, re.MULTILINE))


def test_the_image_holds_the_versions_that_were_tested():
    image, tested = pins("infra/docker/devservers-operator/requirements.txt"), pins("constraints.txt")
    assert image.items() <= tested.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["server"], *extras["kube"], *extras["devservers"]]
    names = {re.split(r"[\[>]", one)[0] for one in needed}
    assert "aiohttp" in names
    # The base image has a pip.
    assert names - image.keys() == {"pip"}, "run make lock"


@pytest.mark.parametrize("overlay", Overlay)
def test_the_guards_know_kueue_by_the_account_it_has(overlay: Overlay):
    ours = str(bundle(overlay, ImageOverrides(IMAGE)))
    theirs = str(bundle(overlay, ImageOverrides(IMAGE), kueue="batch/queues"))
    assert "kueue-system" in ours
    assert "kueue-system" not in theirs
    account = "system:serviceaccount:{}"
    assert theirs.count(account.format("batch:queues")) == ours.count(
        account.format("kueue-system:kueue-controller-manager")
    )


@pytest.mark.parametrize(
    "kueue", ["batch", "batch/", "/queues", "a/b/c", "batch/queues' || true || '", "Batch/q"]
)
def test_what_names_no_account_of_kueue_is_refused(kueue: str):
    with pytest.raises(Invalid) as refused:
        bundle(Overlay.LOCAL, kueue=kueue)
    assert refused.value.code == "devservers.kueue"


def test_the_guard_of_devices_knows_the_same_gpus_as_the_quotas():
    spec = named(bundle(Overlay.LOCAL), "ValidatingAdmissionPolicy", "devservers-devices")["spec"]
    (known,) = (one["expression"] for one in spec["variables"] if one["name"] == "gpus")
    assert tuple(re.findall("'([^']+)'", known)) == GPUS


def test_the_role_of_the_metrics_account_is_of_the_account_that_holds_the_image():
    role = "eks.amazonaws.com/role-arn"
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/devservers-operator:1"
    ours = named(bundle(Overlay.AWS, ImageOverrides(image)), "ServiceAccount", "devservers-metrics")
    assert (
        ours["metadata"]["annotations"][role]
        == "arn:aws:iam::111122223333:role/devservers-devservers-metrics"
    )
    # An image elsewhere names no account.
    elsewhere = named(whole(Overlay.AWS), "ServiceAccount", "devservers-metrics")
    assert role not in elsewhere["metadata"]["annotations"]


def test_the_publisher_runs_from_the_operators_image():
    job = named(whole(Overlay.AWS), "CronJob", "devservers-metrics")["spec"]["jobTemplate"]["spec"][
        "template"
    ]
    assert [one["image"] for one in job["spec"]["containers"]] == [IMAGE]
    assert job["spec"]["containers"][0]["args"][0] in app_commands()


def test_the_bastion_is_behind_an_internal_load_balancer_that_keeps_addresses():
    service = named(whole(Overlay.AWS), "Service", "devservers-bastion")
    prefix = "service.beta.kubernetes.io/aws-load-balancer-"
    marks = service["metadata"]["annotations"]
    assert service["spec"]["loadBalancerClass"] == "service.k8s.aws/nlb"
    assert marks[f"{prefix}scheme"] == "internal"
    assert "preserve_client_ip.enabled=true" in marks[f"{prefix}target-group-attributes"]
    # Locally it stays reachable from the cluster alone.
    assert "type" not in named(whole(Overlay.LOCAL), "Service", "devservers-bastion")["spec"]


def test_every_gpu_flavor_has_machines_that_karpenter_buys():
    manifests = whole(Overlay.AWS)
    pool = named(manifests, "NodePool", "devservers-gpu")["spec"]["template"]["spec"]
    families = next(
        one["values"] for one in pool["requirements"] if one["key"] == "karpenter.k8s.aws/instance-family"
    )
    for flavor in (one for one in manifests if one["kind"] == "DevServerFlavor"):
        type_ = flavor["spec"]["nodeSelector"]["node.kubernetes.io/instance-type"]
        assert type_.partition(".")[0] in families, flavor["metadata"]["name"]
        taints = {taint["key"] for taint in pool["taints"]}
        assert taints <= {one["key"] for one in flavor["spec"]["tolerations"]}
