"""GPUs: their models, the instance types that carry them, and what their error codes mean.

Facts from the vendors' own tables, kept as data files. Pure: what to do about a fault is decided by whoever reads it.
"""

from neorion.capacity.gpu.models import GpuModel, GpuShape, gpu_model, shape_of
from neorion.capacity.gpu.remedy import Remedy
from neorion.capacity.gpu.xid import CATALOGUE, Xid, XidClass, xid

__all__ = ["CATALOGUE", "GpuModel", "GpuShape", "Remedy", "Xid", "XidClass", "gpu_model", "shape_of", "xid"]
