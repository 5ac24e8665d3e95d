"""A changed configuration, taken while the control plane runs: whole, or not at all.

Pools, their health rules and policies may change. What a process is built of may not: its port, its store, its clouds. A file
that asks for that, or that is wrong, is refused, and everything stays as it was; `navarch doctor` says so until it is mended.
"""

import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import anyio

from neorion.keel.base import Duration, Error, Finding, Invalid, Severity
from neorion.keel.config import load
from neorion.keel.run import Loop, LoopTiming, Supervisor
from neorion.keel.telemetry import logger
from neorion.navarch.adapters.config_file import ConfigFile, policies_of, pool_specs
from neorion.navarch.adapters.policy_engine import SubprocessPolicyEngine
from neorion.navarch.app.bootstrapper import make_bootstrapper, reachable
from neorion.navarch.app.control_plane import ControlPlane
from neorion.navarch.app.removal_guard import check_in_use
from neorion.navarch.model import PoolSpec

log = logger(__name__)

# A look at a few files; Kubernetes takes a minute to bring a changed ConfigMap anyway.
_LOOK: Final = LoopTiming(Duration.of(seconds=2))
# Of the server's own keys, those that pools are made of.
_LIVE: Final = frozenset(
    {"heartbeat_interval", "heartbeat_timeout", "health_policy", "health_policy_path", "external_address"}
)
_FINDING: Final = "config"
# More than anybody reads in one line of a log.
_NAMED_MAX: Final = 20

Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Where the configuration comes from."""

    path: Path
    env: Mapping[str, str]

    def read(self) -> ConfigFile:
        return load(self.path, ConfigFile, self.env)


class Reloader:
    """Takes a changed file. `file` is the one that the plane was built from."""

    def __init__(self, source: ConfigSource, file: ConfigFile, plane: ControlPlane) -> None:
        self._source = source
        self._file = file
        self._context = plane.fleet.context
        self._began = _regions(self._context.specs)
        # Nothing seen yet: since the plane was built, which may have waited its turn for long, the file may be another.
        self._stamp: Stamp = ()
        self._asked = False

    async def run(self, crew: Supervisor) -> None:
        """Looks now and then, and at once on SIGHUP."""
        loop = Loop("navarch.config", self.tick, _LOOK, self._context.clock, self._context.rng)
        crew.loop(loop)
        with anyio.open_signal_receiver(signal.SIGHUP) as signals:
            async for _ in signals:
                self._asked = True
                loop.wake()

    async def tick(self) -> None:
        stamp, asked = self._read_stamp(), self._asked
        if stamp == self._stamp and not asked:
            return
        # A file that was refused is not read again before it changes.
        self._stamp, self._asked = stamp, False
        try:
            changed = await self.reload()
        except Error as error:
            log.failure("the configuration was refused, and the old one is kept", error)
            self._context.findings[_FINDING] = Finding(
                Severity.WARNING,
                error.code,
                str(self._source.path),
                f"The file was refused and the configuration of before is kept: {error.sentence}",
                error.hint,
            )
        else:
            self._context.findings.pop(_FINDING, None)
            if changed or asked:
                log.info("the configuration was read again", changed=changed)

    async def reload(self) -> list[str]:
        """Reads the file again. Returns the paths of the settings that changed."""
        file = self._source.read()
        changed = sorted(_differences(_plain(self._file), _plain(file)))
        specs = pool_specs(file)
        policies = policies_of(specs, self._source.path.parent, self._source.env)
        self._check(file, specs)
        engine = self._context.backends.policy_engine
        if isinstance(engine, SubprocessPolicyEngine):
            changed += [f"policy {name}" for name in await engine.reload(policies)]
        # In place: others hold the same mapping.
        for name in set(self._context.specs) - set(specs):
            del self._context.specs[name]
        self._context.specs.update(specs)
        self._context.address = reachable(file)
        self._file = file
        self._context.wake()
        return [*changed[:_NAMED_MAX], *(["…"] if len(changed) > _NAMED_MAX else [])]

    def _check(self, file: ConfigFile, specs: Mapping[str, PoolSpec]) -> None:
        fixed = [
            f"server.{key}"
            for key in type(file.server).model_fields
            if key not in _LIVE and getattr(file.server, key) != getattr(self._file.server, key)
        ]
        fixed += [
            f"providers.{name}"
            for name in sorted(set(file.providers) | set(self._file.providers))
            if file.providers.get(name) != self._file.providers.get(name)
        ]
        fixed += sorted(
            f"region {region} of {name}"
            for name, region in _regions(specs) - self._began
            if file.providers[name].kind(name) != "fake"
        )
        if (
            make_bootstrapper(file, specs, self._source.path.parent)
            and self._context.backends.bootstrapper is None
        ):
            fixed.append("the first setup_commands")
        if fixed:
            raise Invalid(
                "navarch.needs_restart",
                f"Not without a restart: {', '.join(fixed)}.",
                hint="Restart the control plane with this file, or take it back.",
            )
        check_in_use(self._context.state, specs, file.providers)

    def _read_stamp(self) -> Stamp:
        """Stamps of the file and of every policy that a pool names. A link that was replaced has another stamp."""
        folder = self._source.path.parent
        named = {folder / spec.health.policy for spec in self._context.specs.values()}
        return tuple(_stamp(path) for path in sorted({self._source.path, *named}))


def _stamp(path: Path) -> tuple[str, int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), found.st_ino, found.st_size, found.st_mtime_ns


def _regions(specs: Mapping[str, PoolSpec]) -> set[tuple[str, str]]:
    """Clouds were opened for these."""
    return {
        (offer.provider, region)
        for spec in specs.values()
        for offer in spec.offers
        for region in offer.regions
    }


def _plain(file: ConfigFile) -> dict[str, Any]:
    """The file as it means, with pools by name."""
    found = file.model_dump(exclude={"pools"})
    return {**found, "pools": {name: pool.model_dump() for name, pool, _ in file.named_pools()}}


def _differences(before: object, after: object, path: str = "") -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    else:
        yield path
