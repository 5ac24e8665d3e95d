"""A cloud in memory: machines with boot times, stock, quota, faults on order, and answers that get lost.

For trying a configuration, for tests and for simulations; a user names it in so many words. It sells machines like any
cloud and never pretends to be one: nothing here knows who buys.
"""

from neorion.capacity.fake.cloud import FakeCloud, FakeCloudOptions
from neorion.capacity.fake.machine import FakeMachine, Fault
from neorion.capacity.fake.provider import FakeProvider

__all__ = ["FakeCloud", "FakeCloudOptions", "FakeMachine", "FakeProvider", "Fault"]
