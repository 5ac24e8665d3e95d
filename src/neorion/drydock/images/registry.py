"""The registry from which a cluster's nodes pull: one small process beside its bridge."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from neorion.drydock.layout import Layout, PortOffset
from neorion.drydock.machine import find

_PROGRAM: Final = "docker-registry"


@dataclass(frozen=True, slots=True)
class Registry:
    """Serves the cluster's nodes, whatever registry an image's name begins with."""

    address: str
    folder: Path

    @classmethod
    def of(cls, layout: Layout) -> Self:
        return cls(f"{layout.addresses.host}:{layout.port(PortOffset.REGISTRY)}", layout.data("registry"))

    def command(self) -> tuple[str, ...]:
        """Writes the configuration and returns the command to run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "config.yml"
        # JSON is YAML.
        config.write_text(
            json.dumps(
                {
                    "version": "0.1",
                    "log": {"level": "error", "accesslog": {"disabled": True}},
                    "storage": {"filesystem": {"rootdirectory": str(self.folder / "images")}},
                    "http": {"addr": self.address},
                }
            )
        )
        return (find(_PROGRAM), "serve", str(config))

    def hosts_toml(self) -> str:
        """The configuration for a container runtime: every image is pulled from this registry and from no other."""
        url = f"http://{self.address}"
        return f'server = "{url}"\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'
