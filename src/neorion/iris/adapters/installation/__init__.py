"""A controller inside of a cluster: its objects, and how they get there and go again."""

from neorion.iris.adapters.installation.installer import Installer
from neorion.iris.adapters.installation.manifests import manifests, names_of, token_path

__all__ = ["Installer", "manifests", "names_of", "token_path"]
