"""PRODUCT.yaml as the program's renderer reads it: camelCase keys, all values texts, other keys ignored."""

import re
from typing import Final

from msgspec import Struct, field

from neorion.conformance.model.requirement import Category

# A value that a template left to be filled in, as in "[Vendor Name]".
PLACEHOLDER: Final = re.compile(r"^\[.*\]$")


class Metadata(Struct, frozen=True, rename="camel"):
    """The maker of the product and its version."""

    kubernetes_version: str = ""
    platform_name: str = ""
    platform_version: str = ""
    vendor_name: str = ""
    website_url: str = ""
    repo_url: str = ""
    documentation_url: str = ""
    product_logo_url: str = ""
    description: str = ""
    contact_email_address: str = ""
    k8s_conformance_url: str = field(name="k8sConformanceUrl", default="")


class Entry(Struct, frozen=True):
    """The product's entry for one requirement."""

    id: str
    description: str = ""
    level: str = ""
    status: str = ""
    evidence: tuple[str, ...] = ()
    notes: str = ""


class Product(Struct, frozen=True):
    """A filled-in template. Categories that a file leaves out are empty."""

    metadata: Metadata = Metadata()
    spec: dict[Category, tuple[Entry, ...]] = field(default_factory=dict[Category, tuple[Entry, ...]])

    @property
    def entries(self) -> tuple[tuple[Category, Entry], ...]:
        """All entries, by category in the fixed order."""
        return tuple((category, entry) for category in Category for entry in self.spec.get(category, ()))
