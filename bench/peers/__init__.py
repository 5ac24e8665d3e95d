"""Other systems to compare with, each in an environment of its own below the user's cache.

`Peer` starts one side of a comparison; what it does stands in `sides/`, as a script that knows nothing of this project.
"""

from bench.peers.environment import Absent
from bench.peers.peer import Peer

__all__ = ["Absent", "Peer"]
