"""PRODUCT.yaml made from a template and from a run."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from neorion.conformance.decide.artefacts import test_name
from neorion.conformance.decide.verdict import claim_of
from neorion.conformance.model import (
    Category,
    CheckResult,
    Entry,
    Metadata,
    Product,
    Run,
    Status,
    requirements,
)

_TEMPLATE: Final = Metadata(
    platform_name="[Platform Name]",
    platform_version="[Platform Version]",
    vendor_name="[Vendor Name]",
    website_url="[Website URL]",
    repo_url="[Repository URL]",
    documentation_url="[Documentation URL]",
    product_logo_url="[Logo URL]",
    description="[Description]",
    contact_email_address="[Contact Email Address]",
    k8s_conformance_url="[URL of the submission to cncf/k8s-conformance]",
)
# From this version on the validator parses artefacts and wants the test named.
_NAMED_TESTS: Final = "1.37"


def blank_product(version: str) -> Product:
    """The template of a version: every requirement, nothing claimed."""
    spec: dict[Category, tuple[Entry, ...]] = {}
    for each in requirements(version):
        entry = Entry(each.id, each.description, str(each.level))
        spec[each.category] = (*spec.get(each.category, ()), entry)
    return Product(replace(_TEMPLATE, kubernetes_version=f"v{version}"), spec)


def filled_product(product: Product, run: Run, folder: str, *, allow_simulated: bool) -> Product:
    """Claims of a run written into a product. What the run did not check stays as it was."""
    results = {result.requirement: result for result in run.results}

    def filled(entry: Entry) -> Entry:
        result = results.get(entry.id)
        return (
            entry if result is None else _filled(entry, result, run, folder, allow_simulated=allow_simulated)
        )

    spec = {category: tuple(map(filled, entries)) for category, entries in product.spec.items()}
    return replace(product, spec=spec)


def product_mapping(product: Product) -> Mapping[str, object]:
    """The product as it is written, with every key of the template."""
    meta = product.metadata
    names = zip(meta.__struct_fields__, meta.__struct_encode_fields__, strict=True)
    spec = {
        str(category): [
            {
                "id": each.id,
                "description": each.description,
                "level": each.level,
                "status": each.status,
                "evidence": list(each.evidence),
                "notes": each.notes,
            }
            for each in product.spec.get(category, ())
        ]
        for category in Category
        if category in product.spec
    }
    return {"metadata": {written: getattr(meta, name) for name, written in names}, "spec": spec}


def _filled(entry: Entry, result: CheckResult, run: Run, folder: str, *, allow_simulated: bool) -> Entry:
    claim = claim_of(result, allow_simulated=allow_simulated)
    path = f"{folder}/{entry.id}/junit.xml"
    evidence = (f"file://{path}#{test_name(entry.id)}",) if run.version >= _NAMED_TESTS else (path,)
    shown = evidence if claim.status is Status.IMPLEMENTED else ()
    return replace(entry, status=str(claim.status), evidence=shown, notes=claim.notes)
