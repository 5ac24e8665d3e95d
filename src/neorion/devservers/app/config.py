"""What the operator of a cluster may write in the operator's file."""

from neorion.devservers.decide import Settings
from neorion.keel.config import Model


class OperatorFile(Model):
    """`default_image` is for servers and flavors that name none. `scope` is one namespace, or "" for all.

    `autoscaled` is for clusters that make nodes when pods wait for them: a flavor without a node is then no mistake.
    """

    default_image: str = "python:3.11-slim"
    namespace: str = "devservers-system"
    scope: str = ""
    autoscaled: bool = False
    host: str = "127.0.0.1"
    port: int = 8080

    def settings(self) -> Settings:
        return Settings(self.default_image, self.autoscaled)
