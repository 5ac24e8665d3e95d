"""The APIs that a cluster serves."""

from neorion.conformance.adapters.kinds import Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.keel.base import NotFound
from neorion.keel.kube import Kind


async def served(workspace: Workspace, kind: Kind[Json]) -> bool:
    """Returns true if the cluster serves the kind in this very version."""
    return kind.plural in await resources_of(workspace, kind.api_version)


async def resources_of(workspace: Workspace, api_version: str) -> dict[str, set[str]]:
    """The resources of one group and version with their verbs; none where it is not served."""
    root = "apis" if "/" in api_version else "api"
    try:
        found = await workspace.api.read(f"/{root}/{api_version}")
    except NotFound:
        return {}
    return {each["name"]: set(each.get("verbs", ())) for each in found.get("resources", ())}
