"""The operator's configuration file."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from neorion.devservers.app.run import OperatorConfig, WebhookTarget
from neorion.devservers.decide import OperatorSettings
from neorion.keel.config import Model, Problem, SecretValue, load


class WebhookFile(Model):
    """Address to which warnings are posted. It is a secret, because it suffices to post there."""

    url: SecretValue
    allow_private: bool = False

    def problems(self) -> Iterable[Problem]:
        parts = urlsplit(self.url.reveal())
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            yield Problem(
                ("url",), "A webhook needs an address of the web.", "Write it as https://host/path."
            )


class OperatorFile(Model):
    """`default_image` is for servers and flavors that name none, from their next start. `scope` is one namespace, or "" for all.

    `tools_image` is the image of infra/docker/devserver-tools; without it servers have no SSH but that of their own image.
    With `kueue`, servers that have a queue ask Kueue for quota before they get Pods.
    `autoscaled` is for clusters that make nodes when pods wait for them: a flavor without a node is then no mistake.
    """

    default_image: str = "python:3.11-slim"
    tools_image: str = ""
    namespace: str = "devservers-system"
    scope: str = ""
    autoscaled: bool = False
    kueue: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    webhook: WebhookFile | None = None

    def orders(self) -> OperatorConfig:
        hook = self.webhook
        return OperatorConfig(
            OperatorSettings(self.default_image, self.autoscaled, self.tools_image, self.kueue),
            self.namespace,
            self.scope,
            self.host,
            self.port,
            WebhookTarget(hook.url.reveal(), hook.allow_private) if hook else None,
        )


def orders_in(file: Path | None, env: Mapping[str, str]) -> OperatorConfig:
    """Without a file, what goes without saying."""
    return (load(file, OperatorFile, env) if file else OperatorFile()).orders()
