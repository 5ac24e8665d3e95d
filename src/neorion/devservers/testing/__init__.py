"""Builders of servers, flavors and pods for tests of this system and of those who use it.

Tests themselves, and doubles of what is not ours, must not be looked for here.
"""

from neorion.devservers.testing.builders import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server

__all__ = ["FLAVOR", "SETTINGS", "a_claim", "a_flavor", "a_pod", "a_server"]
