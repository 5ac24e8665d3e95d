"""Images without a registry in the outside world: stand-ins for base images, builds, and a registry for the nodes.

Nothing is fetched from an image registry. What pulls the images belongs to `node`.
"""

from neorion.drydock.images.base_images import BUSYBOX, PAUSE, STAND_INS, BaseImage, provide
from neorion.drydock.images.build import BuildRequest, build
from neorion.drydock.images.image_name import ImageName
from neorion.drydock.images.load import load
from neorion.drydock.images.registry import Registry
from neorion.drydock.images.store import ImageStore

__all__ = [
    "BUSYBOX",
    "PAUSE",
    "STAND_INS",
    "BaseImage",
    "BuildRequest",
    "ImageName",
    "ImageStore",
    "Registry",
    "build",
    "load",
    "provide",
]
