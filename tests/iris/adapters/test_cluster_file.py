"""The documents' files load to the letter; wrong ones are refused with the place, the sentence and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from neorion.iris.adapters.cluster_file import (
    ClusterFile,
    RuntimeName,
    behaviours,
    caps,
    kubernetes_settings,
    runtime,
    scale_groups,
)
from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.kubernetes import GroupTemplate, PoolTemplate
from neorion.iris.model import Quota, Resources, UserQuotas
from neorion.iris.model.scale_group import ScaleGroup
from neorion.keel.base import Duration
from neorion.keel.config import InvalidConfig, json_schema, load, loads

FILES = Path(__file__).parent.parent / "cluster_files"
WRONG = sorted((FILES / "wrong").glob("*.yaml"))


def read(name: str) -> ClusterFile:
    return load(FILES / name, ClusterFile, {"ALICE_TOKEN": "one", "BOB_TOKEN": "two"})


def test_the_production_file_of_the_documents_loads_to_the_letter():
    (group,) = scale_groups(read("coreweave.yaml"))
    assert group == ScaleGroup(
        name="h100_8x",
        shape=Resources(cpu_milli=128_000, memory=2048 * 10**9, gpus=8, gpu_variant="H100"),
        machines=1,
        min_slices=0,
        max_slices=10,
        priority=100,
        attributes=(
            ("accelerator-type", "gpu"),
            ("accelerator-variant", "H100"),
            ("instance-type", "gd-8xh100ib-i128"),
            ("region", "LGA1"),
            ("scale-group", "h100_8x"),
        ),
        scale_up_delay=Duration.of(seconds=60),
        scale_down_delay=Duration.of(seconds=300),
        startup_grace=Duration.of(seconds=2400),
        boot_timeout=Duration.of(seconds=1800),
        init_timeout=Duration.of(seconds=1800),
    )


def test_the_production_file_says_where_everything_is():
    file = read("coreweave.yaml")
    assert file.platform.coreweave is not None
    assert (file.platform.coreweave.region, file.platform.coreweave.namespace) == ("LGA1", "iris")
    assert file.controller.coreweave is not None
    assert file.controller.coreweave.port == 10000
    assert file.controller.coreweave.service_name == "iris-controller-svc"
    assert file.defaults.bootstrap.docker_image == "ghcr.io/marin-community/iris-worker:latest"
    assert file.defaults.bootstrap.worker_port == 10001
    assert file.defaults.autoscaler.evaluation_interval == Duration.of(seconds=10)


def test_the_test_file_of_the_documents_loads_to_the_letter():
    file = read("coreweave-test.yaml")
    (group,) = scale_groups(file)
    assert group.name == "cpu_test"
    assert group.shape == Resources(cpu_milli=4000, memory=16 * 10**9, disk=50 * 10**9)
    assert (group.min_slices, group.max_slices) == (0, 2)
    assert ("accelerator-variant", "cpu") not in group.attributes
    assert (group.scale_up_delay, group.scale_down_delay) == (
        Duration.of(seconds=5),
        Duration.of(seconds=30),
    )


def test_a_local_file_has_faults_accounts_and_durations_in_every_form():
    file = read("local.yaml")
    small, large = scale_groups(file)
    assert (small.machines, large.machines, large.priority) == (1, 2, 10)
    assert large.attributes == (
        ("accelerator-type", "gpu"),
        ("accelerator-variant", "A100"),
        ("nvlink", "true"),
        ("scale-group", "a100-pair"),
    )
    assert (small.scale_up_delay, small.scale_down_delay) == (Duration.of(ms=500), Duration.of(minutes=2.5))
    assert (small.boot_timeout, small.init_timeout) == (Duration.of(seconds=20), Duration.of(minutes=1))
    assert behaviours(file) == {
        "h100_8x": FaultProfile(),
        "a100-pair": FaultProfile(
            boot_delay=Duration.of(seconds=2),
            quota=3,
            no_capacity=1,
            stuck=1,
            lost_after=Duration.of(seconds=30),
        ),
    }
    assert file.auth.users["alice"].token.reveal() == "one"
    assert caps(file) == UserQuotas(
        Quota(tasks=64, gpus=16), {"bob": Quota(tasks=8, cpu_milli=4000, memory=2**33, gpus=16)}
    )


def test_tasks_are_processes_unless_another_runtime_is_written():
    def chosen(file: ClusterFile) -> set[RuntimeName]:
        return {runtime(file, group) for group in file.scale_groups.values()}

    assert chosen(read("coreweave.yaml")) == chosen(read("local.yaml")) == {RuntimeName.PROCESS}
    text = (FILES / "coreweave.yaml").read_text()
    pods = text.replace("worker_port: 10001", "worker_port: 10001\n    runtime: kubernetes")
    assert chosen(loads(pods, ClusterFile, {})) == {RuntimeName.KUBERNETES}
    other = pods.replace("max_slices: 10", "max_slices: 10\n    runtime: process", 1)
    assert chosen(loads(other, ClusterFile, {})) == {RuntimeName.PROCESS}


def test_the_settings_of_worker_pods_follow_from_the_documents_file():
    settings = kubernetes_settings(read("coreweave.yaml"))
    assert settings.controller == "iris-controller-svc.iris.svc.cluster.local:10000"
    assert settings.image == "ghcr.io/marin-community/iris-worker:latest"
    assert (settings.namespace, settings.host_network) == ("iris", True)
    assert settings.groups == {"h100_8x": GroupTemplate(PoolTemplate("gd-8xh100ib-i128"))}


def test_worker_pods_need_no_coreweave():
    settings = kubernetes_settings(read("kubernetes.yaml"))
    assert settings.groups == {
        "gpu": GroupTemplate(node_selector={"node.kubernetes.io/instance-type": "p5.48xlarge"}),
        "small": GroupTemplate(),
    }
    assert (settings.host_network, settings.pull_secrets) == (False, ())


def findings(path: Path) -> str:
    with pytest.raises(InvalidConfig) as refused:
        load(path, ClusterFile, {"TOKEN": "x9"})
    lines: list[str] = []
    for finding in refused.value.findings:
        subject = finding.subject.removeprefix(f"{path.parent}/")
        lines.append(f"{subject}: {finding.sentence}" + (f" [{finding.hint}]" if finding.hint else ""))
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_file_is_refused_with_all_its_mistakes(path: Path):
    assert findings(path) == path.with_suffix(".txt").read_text()


def test_there_are_wrong_files():
    assert len(WRONG) >= 15


Node = dict[str, Any]


def rows(schema: Node, section: Node, path: str = "") -> dict[str, list[str]]:
    """Every key's default and meaning, as the schema for editors knows them. NAME stands for a name people choose."""
    found: dict[str, list[str]] = {}
    for name, field in section["properties"].items():
        inner, chosen = below(schema, field)
        if inner is not None:
            found |= rows(schema, inner, f"{path}{name}.{'NAME.' if chosen else ''}")
        else:
            default = json.dumps(field.get("default")).strip('"')
            required = name in section.get("required", ())
            shown = "required" if required else "none" if default in ("", "null") else f"`{default}`"
            found[path + name] = [shown, field["description"]]
    return found


def below(schema: Node, field: Node) -> tuple[Node | None, bool]:
    """The section that a field holds, and whether it holds several by name."""
    for choice in (field, *field.get("anyOf", ())):
        several = [choice.get("additionalProperties"), *choice.get("patternProperties", {}).values()]
        for holder in (choice, *several):
            if isinstance(holder, dict) and "$ref" in holder:
                target = schema["$defs"][holder["$ref"].rpartition("/")[2]]
                return (target, holder is not choice) if "properties" in target else (None, False)
    return None, False


def test_the_guide_lists_every_key_with_its_default_and_meaning():
    schema = json_schema(ClusterFile)
    guide = (Path(__file__).parent.parent.parent.parent / "docs/guides/cluster-file.md").read_text()
    listed: dict[str, list[str]] = {}
    for line in guide.splitlines():
        if line.startswith("| `"):
            key, *rest = (cell.strip() for cell in line.strip("|").split("|"))
            listed[key.strip("`")] = rest
    assert listed == rows(schema, schema)


def test_editors_get_every_key_explained():
    schema = json_schema(ClusterFile)
    for name, section in schema["$defs"].items():
        for key, field in section.get("properties", {}).items():
            assert "description" in field or "$ref" in field, f"{name}.{key}"
    assert json.loads(json.dumps(schema)) == schema
