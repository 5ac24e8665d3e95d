"""The whole file, and what its sections may contradict each other in."""

from collections.abc import Iterable, Iterator

from pydantic import Field

from neorion.iris.adapters.cluster_file.scale_groups import GroupName, ScaleGroupConfig
from neorion.iris.adapters.cluster_file.sections import (
    Auth,
    Controller,
    Defaults,
    Limits,
    PlatformModel,
    Retention,
    Storage,
    arms,
)
from neorion.keel.config import Model, Problem


class ClusterFile(Model):
    """One cluster: where its slices and its controller are, and the scale groups it may grow."""

    platform: PlatformModel = Field(description="Where slices come from.")
    controller: Controller = Field(description="Where the controller is found.")
    defaults: Defaults = Field(default_factory=Defaults, description="What holds for every scale group.")
    scale_groups: dict[GroupName, ScaleGroupConfig] = Field(min_length=1, description="Scale groups by name.")
    storage: Storage = Field(
        default_factory=Storage, description="Where the controller keeps what must survive."
    )
    auth: Auth = Field(
        default_factory=Auth, description="Accounts of users; without it every caller that reaches the port."
    )
    limits: Limits = Field(default_factory=Limits, description="What users may have at once.")
    retention: Retention = Field(
        default_factory=Retention, description="How long is remembered what is over."
    )

    @property
    def arm(self) -> str:
        """The platform, as its key names it."""
        return arms(self.platform)[0]

    def problems(self) -> Iterable[Problem]:
        yield from self._same_names()
        chosen = arms(self.platform)
        # Sections without exactly one platform complain about that themselves.
        if len(chosen) == 1:
            yield from self._other_platforms(chosen[0])
            yield from self._pods()
            yield from self._coreweave()

    def _same_names(self) -> Iterator[Problem]:
        """Objects are named after groups, and their names know no underscores."""
        taken: dict[str, str] = {}
        for name in self.scale_groups:
            first = taken.setdefault(name.replace("_", "-"), name)
            if first != name:
                sentence = f'"{name}" and "{first}" are one name where underscores become dashes.'
                yield Problem(("scale_groups", name), sentence, "Rename one of them.")

    def _other_platforms(self, arm: str) -> Iterator[Problem]:
        sections = [(("controller",), arms(self.controller))]
        sections += [
            (("scale_groups", name, "slice_template"), g.arms) for name, g in self.scale_groups.items()
        ]
        for steps, chosen in sections:
            if len(chosen) == 1 and chosen[0] != arm:
                sentence = f'"{steps[-1]}" is for {chosen[0]}, but the platform is {arm}.'
                yield Problem((*steps, chosen[0]), sentence, f'Write a "{arm}" section instead.')

    def _pods(self) -> Iterator[Problem]:
        if self.platform.in_cluster is not None and not self.defaults.bootstrap.docker_image:
            sentence = 'Worker Pods need "defaults.bootstrap.docker_image".'
            yield Problem(("defaults", "bootstrap", "docker_image"), sentence)

    def _coreweave(self) -> Iterator[Problem]:
        platform = self.platform.coreweave
        if platform is None:
            return
        for name, group in self.scale_groups.items():
            pool = group.slice_template.coreweave
            if pool is not None and pool.region not in (None, platform.region):
                sentence = f'"region" is {pool.region}, but the platform is in {platform.region}.'
                steps = ("scale_groups", name, "slice_template", "coreweave", "region")
                yield Problem(steps, sentence, "Leave it out here, or make them agree.")
