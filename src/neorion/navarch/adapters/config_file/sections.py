"""The server and the clouds, as the file describes them."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import Field

from neorion.keel.base import Duration, did_you_mean
from neorion.keel.config import DurationField, Model, Problem
from neorion.navarch.adapters.config_file.schedulers import Iris, Kubernetes, Notifier

PROVIDER_TYPES: Final = ("aws", "coreweave", "fake", "gcp", "lambda")
_PORT_DIGITS: Final = 5
# A longer interval would be a mistake in the file.
_INTERVAL_MAX: Final = Duration.of(hours=24)
ProviderType = Literal["aws", "coreweave", "fake", "gcp", "lambda"]


class ServerModel(Model):
    """The control plane itself."""

    address: str = Field(default="127.0.0.1:50051", description="Where it listens, as host:port or :port.")
    external_address: str = Field(default="", description="Where agents reach it, if that is elsewhere.")
    heartbeat_interval: DurationField = Field(
        default=Duration.of(seconds=30), description="How often an agent says that it lives."
    )
    heartbeat_timeout: DurationField | None = Field(
        default=None, description="When a silent node counts as lost; three intervals if nothing is said."
    )
    health_check_interval: DurationField = Field(
        default=Duration.of(seconds=60), description="How often an agent looks at what sends no events."
    )
    autoscale_interval: DurationField = Field(
        default=Duration.of(seconds=30), description="How often pools are sized."
    )
    health_policy_path: str = Field(default="", description="A file of rules for all pools.")
    health_policy: str = Field(default="", description="The newer name of health_policy_path.")
    store: str = Field(
        default="", description="sqlite:///path or postgresql://…; a file in state_dir if nothing is said."
    )
    state_dir: str = Field(default="", description="Where files of its own go.")
    tls: Literal["own", "none"] = Field(
        default="own",
        description="own: TLS with a generated key. none: plain HTTP, on a network that others protect.",
    )
    tls_cert: str = Field(default="", description="A PEM file: a certificate instead of the generated one.")
    tls_key: str = Field(default="", description="A PEM file: the key of its certificate.")
    kubernetes: Kubernetes | None = Field(
        default=None, description="The cluster of its nodes; {} for the one it runs in."
    )
    iris: Iris | None = Field(default=None, description="An Iris whose queue sizes a pool.")
    notifier: Notifier = Field(default_factory=Notifier, description="Another scheduler of the nodes' work.")

    def problems(self) -> Iterable[Problem]:
        host, _, port = self.address.rpartition(":")
        if not port.isdecimal() or len(port) > _PORT_DIGITS or not int(port) < 65_536 or "/" in host:
            yield Problem(
                ("address",), f'"{self.address[:60]}" is no address.', "Write host:port, as in 0.0.0.0:50051."
            )
        if self.health_policy and self.health_policy_path:
            yield Problem(
                ("health_policy",), '"health_policy" and "health_policy_path" are one thing.', "Remove one."
            )
        if bool(self.tls_cert) != bool(self.tls_key):
            yield Problem(
                ("tls_cert" if self.tls_cert else "tls_key",), '"tls_cert" and "tls_key" belong together.'
            )
        if self.tls == "none" and self.tls_cert:
            yield Problem(("tls",), '"tls: none" does not go with "tls_cert".', "Remove one.")
        for key in ("heartbeat_interval", "health_check_interval", "autoscale_interval"):
            if getattr(self, key) < Duration.of(ms=100):
                yield Problem((key,), f'"{key}" is too short.', "100ms is the least.")
            elif getattr(self, key) > _INTERVAL_MAX:
                yield Problem((key,), f'"{key}" is too long.', f"{_INTERVAL_MAX} is the most.")

    @property
    def policy(self) -> str:
        return self.health_policy or self.health_policy_path

    @property
    def silence(self) -> Duration:
        return self.heartbeat_timeout or self.heartbeat_interval * 3

    @property
    def bind_address(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 -- ":50051" says every address


class FakeFault(Model):
    """Something that goes wrong on purpose."""

    after: DurationField = Field(description="How long after the machine booted.")
    machine: int = Field(default=1, ge=1, description="Which machine: the first that is made is 1.")
    xid: int = Field(default=0, ge=0, description="Its error code, if it has one.")
    kind: str = Field(default="xid", description="What kind of event.")
    gpu: int = Field(default=0, ge=0, description="Which GPU.")


class ProviderModel(Model):
    """A cloud. Without `type`, its name says which."""

    type: ProviderType | None = Field(default=None, description="Which cloud.")
    api_key_env: str = Field(default="", description="The environment variable that holds the key.")
    api_url: str = Field(default="", description="Where its API answers, if not at the usual place.")
    project: str = Field(default="", description="The project that pays.")
    region: str = Field(default="", description="The region, if pools name none.")
    zone: str = Field(default="", description="The zone, if pools name none.")
    profile: str = Field(default="", description="The named profile of credentials.")
    launch_template: str = Field(default="", description="What its machines have beyond their pool's keys.")
    kubeconfig: str = Field(default="", description="How the cluster is reached.")
    context: str = Field(default="", description="Which context of the kubeconfig.")
    prices: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict,
        description="Dollars an hour by instance type, or TYPE/spot: what you pay instead of the published price.",
    )
    gpu_count: int | None = Field(default=None, ge=0, description="GPUs of each machine.")
    boot: DurationField | None = Field(default=None, description="How long a machine takes to boot.")
    lost_answers: float | None = Field(default=None, ge=0, lt=1, description="The chance of a lost answer.")
    faults: tuple[FakeFault, ...] = Field(default=(), description="What goes wrong on purpose.")

    def kind(self, name: str) -> str:
        return self.type or name


# Means something to all of them.
_ALL_KEYS: Final = {"prices"}
_KEYS: Final = {
    "aws": {"region", "zone", "profile", "launch_template", "api_url"},
    "coreweave": {"region", "kubeconfig", "context"},
    "fake": {"region", "zone", "gpu_count", "boot", "lost_answers", "faults"},
    "gcp": {"project", "zone", "region", "launch_template", "api_url"},
    "lambda": {"api_key_env", "region", "api_url"},
}


def provider_problems(name: str, provider: ProviderModel) -> Iterable[Problem]:
    kind = provider.kind(name)
    if kind not in PROVIDER_TYPES:
        hint = f'Write "type:" and one of {", ".join(PROVIDER_TYPES)}; {did_you_mean(name, PROVIDER_TYPES)}'
        yield Problem(("providers", name), f'"{name}" does not say which cloud it is.', hint)
        return
    written = provider.model_fields_set - {"type"}
    known = _KEYS[kind] | _ALL_KEYS
    for key in sorted(written - known):
        yield Problem(("providers", name, key), f'"{key}" means nothing to {kind}.', did_you_mean(key, known))
    if kind == "gcp" and not provider.project:
        yield Problem(("providers", name), 'gcp needs "project".')
