"""Builders of servers, flavors and pods for tests of this system and of those who use it.

No test and no double of the cluster: that is `neorion.keel.kube.testing`.
"""

from neorion.devservers.testing.build import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server

__all__ = ["FLAVOR", "SETTINGS", "a_claim", "a_flavor", "a_pod", "a_server"]
