"""A cloud in memory: machines with boot times, stock, quota, injected faults, and lost responses.

For trying a configuration, for tests and for simulations; a user selects it by name. It implements the port like any
other cloud, and nothing here depends on a buyer.
"""

from neorion.capacity.fake.cloud import FakeCloud, FakeCloudOptions
from neorion.capacity.fake.machine import FakeMachine, Fault
from neorion.capacity.fake.provider import FakeProvider

__all__ = ["FakeCloud", "FakeCloudOptions", "FakeMachine", "FakeProvider", "Fault"]
