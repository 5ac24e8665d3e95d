"""A controller inside of a cluster: its objects, and how they get there and go again.

Slices and their machines are the platform's: they are deleted here only when their controller is removed.
"""

from neorion.iris.adapters.installation.installer import Installer
from neorion.iris.adapters.installation.manifests import manifests, names_of, token_path
from neorion.iris.adapters.installation.rehearsal import rehearse

__all__ = ["Installer", "manifests", "names_of", "rehearse", "token_path"]
