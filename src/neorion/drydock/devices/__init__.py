"""Devices that are not there: a plugin that gives a node's kubelet fake GPUs, whose health a person can flip.

The plugin itself runs as a process of the node; what a GPU can do is nobody's business here.
"""

from neorion.drydock.devices.device_state import RESOURCE, Device, DeviceTable, Health

__all__ = ["RESOURCE", "Device", "DeviceTable", "Health"]
