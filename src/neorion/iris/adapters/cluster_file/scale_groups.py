"""Scale groups as the file describes them, and what one of them may get wrong."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from neorion.iris.adapters.cluster_file.sections import RuntimeName, arms, one_arm
from neorion.keel.base import Duration, Quantity
from neorion.keel.config import DurationField, Model, Problem, QuantityField

# "iris-", a group and "-" with the 26 characters of an id still fit a label of 63.
GROUP_NAME_MAX = 30
_GROUP_NAME = re.compile(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_ATTRIBUTE = r"^[a-z0-9][a-z0-9./_-]{0,127}$"
# Attributes that follow from the rest of the file.
DERIVED = ("accelerator-type", "accelerator-variant", "infiniband", "instance-type", "region", "scale-group")

Attribute = Annotated[str, Field(pattern=_ATTRIBUTE)]


def _group_name(text: str) -> str:
    if len(text) > GROUP_NAME_MAX or _GROUP_NAME.fullmatch(text) is None:
        raise ValueError(
            f'"{text[:40]}" is no name of a scale group; use lower-case letters, digits, dashes and underscores, '
            f"at most {GROUP_NAME_MAX}, with a letter or digit at both ends"
        )
    return text


GroupName = Annotated[
    str,
    AfterValidator(_group_name),
    WithJsonSchema({"type": "string", "pattern": f"^{_GROUP_NAME.pattern}$", "maxLength": GROUP_NAME_MAX}),
]


class Accelerator(StrEnum):
    """Kind of processor that tasks of the group use."""

    CPU = "cpu"
    GPU = "gpu"


class MachineResources(Model):
    """Capacity of one machine."""

    cpu: QuantityField = Field(description="Cores.")
    ram: QuantityField = Field(description="Memory.")
    disk: QuantityField = Field(
        default=Quantity(0), description="Disk; with 0, tasks that ask for disk go elsewhere."
    )
    gpu_count: int = Field(default=0, ge=0, description="GPUs.")

    def problems(self) -> Iterable[Problem]:
        for name in ("cpu", "ram"):
            if not getattr(self, name):
                yield Problem((name,), f'"{name}" must be more than nothing.')


class ComputeClass(StrEnum):
    """CoreWeave's terms for a machine: reserved or spot."""

    DEFAULT = "default"
    SPOT = "spot"


class CoreweaveSlice(Model):
    """The NodePool of a slice."""

    region: str | None = Field(default=None, description="The platform's region, if it is written again.")
    instance_type: str = Field(
        min_length=1, description="CoreWeave's name of the machine, as in `gd-8xh100ib-i128`."
    )
    gpus_per_node: int | None = Field(
        default=None, ge=0, description="`resources.gpu_count`, if it is written again."
    )
    gpu_class: str | None = Field(default=None, description="`accelerator_variant`, if it is written again.")
    infiniband: bool = Field(default=False, description="Gives workers the machine's InfiniBand devices.")
    compute_class: ComputeClass = Field(
        default=ComputeClass.DEFAULT, description="`spot` machines are cheaper and may be taken away."
    )
    annotations: dict[str, str] = Field(default_factory=dict, description="Annotations of its NodePool.")


class KubernetesSlice(Model):
    """The worker Pods of a slice on nodes that exist already."""

    node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels that the nodes of its Pods must have."
    )
    infiniband: bool = Field(default=False, description="Gives workers the machine's InfiniBand devices.")


class LocalFaults(Model):
    """Faults that are injected to exercise recovery."""

    quota: int | None = Field(
        default=None, ge=0, description="More slices than this at once are refused for quota."
    )
    no_capacity: int = Field(default=0, ge=0, description="So many first requests find no capacity.")
    stuck: int = Field(default=0, ge=0, description="So many first slices never boot.")
    lost_after: DurationField | None = Field(
        default=None, description="Every slice loses a machine so long after it booted."
    )


class LocalSliceModel(Model):
    """A slice of worker processes, with GPUs that are only numbers."""

    boot_delay: DurationField = Field(default=Duration(0), description="How long its machines take to exist.")
    faults: LocalFaults = Field(default_factory=LocalFaults, description="What goes wrong on purpose.")


class SliceTemplate(Model):
    """Template of a slice. Settings that the group has already may be omitted here."""

    accelerator_type: Accelerator | None = Field(
        default=None, description="The group's, if it is written again."
    )
    accelerator_variant: str | None = Field(default=None, description="The group's, if it is written again.")
    num_vms: int | None = Field(default=None, ge=1, description="The group's, if it is written again.")
    coreweave: CoreweaveSlice | None = Field(default=None, description="A slice on CoreWeave.")
    kubernetes: KubernetesSlice | None = Field(default=None, description="A slice on any Kubernetes cluster.")
    local: LocalSliceModel | None = Field(default=None, description="A slice on this machine.")

    def problems(self) -> Iterable[Problem]:
        return one_arm(self)


class ScaleGroupConfig(Model):
    """Slices of one shape."""

    accelerator_type: Accelerator = Field(description="`cpu` or `gpu`.")
    accelerator_variant: str = Field(
        default="", description="The GPU's model, as in `H100`; of a CPU nothing or `cpu`."
    )
    num_vms: int = Field(default=1, ge=1, description="Machines in each slice.")
    resources: MachineResources = Field(description="What one machine offers.")
    min_slices: int = Field(default=0, ge=0, description="Slices kept even without demand.")
    max_slices: int = Field(ge=1, description="Never more slices than this.")
    priority: int = Field(default=100, ge=0, description="A group with a lower number is asked first.")
    attributes: dict[Attribute, str] = Field(
        default_factory=dict,
        description="Attributes of its workers besides those that follow from this file.",
    )
    runtime: RuntimeName | None = Field(
        default=None, description="How its tasks start, where it is not `defaults.bootstrap.runtime`."
    )
    slice_template: SliceTemplate = Field(description="How the platform makes a slice.")

    def problems(self) -> Iterable[Problem]:
        if self.min_slices > self.max_slices:
            sentence = f'"min_slices" is {self.min_slices}, more than the {self.max_slices} of "max_slices".'
            yield Problem(("min_slices",), sentence)
        for key in sorted(set(DERIVED) & set(self.attributes)):
            yield Problem(("attributes", key), f'"{key}" follows from the rest of the file.', "Remove it.")
        yield from self._accelerator_problems()
        yield from self._template_problems()

    def _accelerator_problems(self) -> Iterator[Problem]:
        count = self.resources.gpu_count
        if self.accelerator_type is Accelerator.GPU:
            if not count:
                yield Problem(("resources",), 'A gpu group needs "gpu_count" of at least 1.')
            if not self.accelerator_variant:
                yield Problem((), 'A gpu group needs "accelerator_variant".', 'As in "H100".')
        else:
            if count:
                sentence = f'A cpu group has no GPUs, but "gpu_count" is {count}.'
                yield Problem(("resources", "gpu_count"), sentence, 'Write "accelerator_type: gpu".')
            if self.accelerator_variant not in ("", "cpu"):
                sentence = f'A cpu group has no "accelerator_variant" {self.accelerator_variant}.'
                yield Problem(("accelerator_variant",), sentence, 'Leave it out, or write "cpu".')

    def _template_problems(self) -> Iterator[Problem]:
        again: list[tuple[tuple[str, ...], object, str, object]] = [
            ((name,), getattr(self.slice_template, name), name, getattr(self, name))
            for name in ("accelerator_type", "accelerator_variant", "num_vms")
        ]
        if (pool := self.slice_template.coreweave) is not None:
            count = self.resources.gpu_count
            variant = self.accelerator_variant
            again += [
                (("coreweave", "gpus_per_node"), pool.gpus_per_node, "resources.gpu_count", count),
                (("coreweave", "gpu_class"), pool.gpu_class, "accelerator_variant", variant),
            ]
        for steps, here, name, there in again:
            if here is not None and here != there:
                sentence = f'"{steps[-1]}" is {here}, but "{name}" of the group is {there}.'
                yield Problem(("slice_template", *steps), sentence, "Leave it out here, or make them agree.")

    @property
    def arms(self) -> tuple[str, ...]:
        return arms(self.slice_template)
