"""Simulated devices: a plugin that offers simulated GPUs to a node's kubelet; their health can be changed.

The plugin runs as a process of the node. The devices have no function.
"""

from neorion.drydock.devices.device_state import RESOURCE, Device, DeviceTable, Health

__all__ = ["RESOURCE", "Device", "DeviceTable", "Health"]
