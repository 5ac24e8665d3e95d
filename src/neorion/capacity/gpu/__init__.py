"""GPUs: their models, the instance types that have them, and the meaning of their error codes.

Facts from the vendors' own tables, kept as data files. Pure: decisions about a fault belong to the systems.
"""

from neorion.capacity.gpu.models import GpuModel, GpuShape, gpu_model, shape_of
from neorion.capacity.gpu.remedy import Remedy
from neorion.capacity.gpu.xid import CATALOGUE, Xid, XidClass, xid

__all__ = ["CATALOGUE", "GpuModel", "GpuShape", "Remedy", "Xid", "XidClass", "gpu_model", "shape_of", "xid"]
