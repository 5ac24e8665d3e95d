"""The configuration file of navarch, in its older and its newer form, and files of health policies.

Reads what people wrote and turns it into the model's values. Nothing is decided here, and no file but those named is read.
"""

from neorion.navarch.adapters.config_file.convert import pool_specs
from neorion.navarch.adapters.config_file.file import ConfigFile
from neorion.navarch.adapters.config_file.policies import PolicyFile, default_policy, policies_of

__all__ = ["ConfigFile", "PolicyFile", "default_policy", "policies_of", "pool_specs"]
