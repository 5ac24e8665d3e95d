"""Accelerator profiles: what a kind of accelerator is called in a cluster."""

import tomllib
from importlib import resources
from typing import Final

import msgspec
from msgspec import Struct, field

from neorion.keel.base import NotFound, did_you_mean


class MetricNames(Struct, frozen=True, forbid_unknown_fields=True):
    """Names of an exporter's series. `device` is the label that holds the id of the device."""

    device: str = ""
    utilization: str = ""
    memory: str = ""
    optional: tuple[str, ...] = ()


class DriverVersion(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the version of the driver is advertised, and the file in which every container can read it."""

    attribute: str = ""
    label: str = ""
    file: str = ""


class AcceleratorProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of accelerator.

    `visible_devices` is the variable by which its runtime hands out devices. `virtual` is the label of nodes whose
    devices are virtual ones.
    """

    name: str
    resource: str
    device_class: str = ""
    driver: str = ""
    taint: str = ""
    device_glob: str = ""
    visible_devices: str = ""
    virtual: str = ""
    version: DriverVersion = field(default_factory=DriverVersion)
    exporters: tuple[str, ...] = ()
    metrics: MetricNames = field(default_factory=MetricNames)


def builtin_profiles() -> tuple[str, ...]:
    return tuple(_PROFILES)


def builtin_profile(name: str) -> AcceleratorProfile:
    found = _PROFILES.get(name)
    if found is None:
        raise NotFound(
            "conformance.no_profile",
            f'There is no accelerator profile "{name[:60]}".',
            hint=did_you_mean(name, _PROFILES) or "Give the path of a profile file.",
        )
    return found


def parse_profile(text: str) -> AcceleratorProfile:
    """A profile as a TOML file states it. Raises ValueError for a text that is not one."""
    return msgspec.convert(tomllib.loads(text), AcceleratorProfile)


def _read() -> dict[str, AcceleratorProfile]:
    text = resources.files(__package__ or __name__).joinpath("profiles.toml").read_text("utf-8")
    rows = tomllib.loads(text)
    return {name: msgspec.convert({"name": name, **row}, AcceleratorProfile) for name, row in rows.items()}


_PROFILES: Final = _read()
