"""Configuration files, read strictly: YAML → typed models, or all mistakes at once, each with its line and a hint.

The only package that reads with PyYAML and pydantic. Contains no model: each system defines its own.
Loads pydantic: command lines import this package inside the commands that read a file.
"""

from neorion.keel.config.erase_env import erase_from_environment
from neorion.keel.config.loading import InvalidConfig, load, loads
from neorion.keel.config.model import DurationField, Model, NameField, Problem, QuantityField
from neorion.keel.config.private_folder import make_private
from neorion.keel.config.schema import json_schema
from neorion.keel.config.secret import SecretValue
from neorion.keel.config.secret_file import SecretFile, write_secret

__all__ = [
    "DurationField",
    "InvalidConfig",
    "Model",
    "NameField",
    "Problem",
    "QuantityField",
    "SecretFile",
    "SecretValue",
    "erase_from_environment",
    "json_schema",
    "load",
    "loads",
    "make_private",
    "write_secret",
]
