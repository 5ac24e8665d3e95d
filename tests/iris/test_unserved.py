import pytest

from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.iris.app.cluster import _refuse_unserved, local_file
from neorion.keel.base import Invalid
from neorion.keel.config import loads


def test_the_local_cluster_asks_for_nothing_that_is_not_served():
    _refuse_unserved(local_file(2))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("storage.database", "storage: { database: 'postgresql://x' }"),
        ("limits", "limits: { running_tasks: 5 }"),
        ("retention", "retention: { jobs: 1h }"),
    ],
)
def test_what_is_not_served_is_refused_by_name(key: str, text: str):
    head = (
        "platform: { local: {} }\ncontroller: { local: {} }\nscale_groups:\n  g:\n    accelerator_type: cpu\n"
    )
    group = "    accelerator_variant: cpu\n    num_vms: 1\n    resources: { cpu: 1, ram: 1GB, disk: 1GB, gpu_count: 0 }\n"
    slices = "    min_slices: 0\n    max_slices: 1\n    slice_template: { accelerator_type: cpu, accelerator_variant: cpu, num_vms: 1, local: {} }\n"
    file = loads(f"{head}{group}{slices}{text}\n", ClusterFile, {})
    with pytest.raises(Invalid, match=key):
        _refuse_unserved(file)
