"""Sections for the scheduler that places work on nodes: Kubernetes, or another one behind webhooks."""

from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from neorion.keel.base import Duration
from neorion.keel.config import DurationField, Model, Problem


class Kubernetes(Model):
    """The cluster whose nodes the fleet's machines are. Inside of a pod of it, nothing has to be said."""

    kubeconfig: str = Field(default="", description="How the cluster is reached from outside.")
    context: str = Field(default="", description="Which context of the kubeconfig.")
    grace_period: DurationField | None = Field(
        default=None, description="The most that an evicted pod gets to stop; its own if nothing is said."
    )
    empty_dir: Literal["delete", "wait"] = Field(
        default="delete", description="Pods with data of their own are evicted, or waited for."
    )


class Iris(Model):
    """An Iris whose tasks run on the nodes of a pool: its queue is the pool's."""

    url: str = Field(description="Where its controller answers.")
    pool: str = Field(description="The pool whose nodes run its tasks.")
    token_env: str = Field(default="", description="The environment variable that holds a token for it.")

    def problems(self) -> Iterable[Problem]:
        if not _is_http(self.url):
            yield Problem(("url",), f'"{self.url[:60]}" is no address.', "Write one like https://host:10000.")


class WebhookModel(Model):
    """Addresses that another scheduler answers at."""

    cordon_url: str = Field(default="", description="Is told that a node takes no new work.")
    uncordon_url: str = Field(default="", description="Is told that a node takes work again.")
    drain_url: str = Field(default="", description="Is told to empty a node.")
    drain_status_url: str = Field(default="", description="Is asked whether a node is empty.")
    timeout: DurationField = Field(default=Duration.of(seconds=30), description="For one answer.")
    headers: dict[str, str] = Field(default_factory=dict, description="Sent with every message.")

    def problems(self) -> Iterable[Problem]:
        urls = ("cordon_url", "uncordon_url", "drain_url", "drain_status_url")
        if not any(getattr(self, key) for key in urls):
            yield Problem((), "A webhook needs an address.", 'Write "cordon_url" or "drain_url".')
        for key in urls:
            url = getattr(self, key)
            if url and not _is_http(url):
                yield Problem((key,), f'"{url[:60]}" is no address.', "Write one like https://host/path.")
        if self.drain_status_url and not self.drain_url:
            yield Problem(("drain_status_url",), '"drain_status_url" needs "drain_url".')


class Notifier(Model):
    """Another scheduler than Kubernetes."""

    type: Literal["noop", "webhook"] = Field(default="noop", description="How it is told.")
    webhook: WebhookModel | None = Field(default=None, description="Where it answers.")

    def problems(self) -> Iterable[Problem]:
        if (self.type == "webhook") is not (self.webhook is not None):
            yield Problem((), '"type: webhook" and "webhook" belong together.', "Write both, or neither.")


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    # Who has to say who they are does so in headers, which are shown nowhere.
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
