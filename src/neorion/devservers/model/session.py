"""A connection that is open at the bastion: the two halves of a DevServerSession."""

from typing import Annotated, Final

from msgspec import Meta

from neorion.devservers.model.field_types import GROUP, Text
from neorion.keel.kube import KubeStruct

# The bastion replica that a session is open at.
REPLICA_LABEL: Final = f"{GROUP}/replica"
# The user of a session.
SESSION_USER_LABEL: Final = f"{GROUP}/session-user"


class DevServerSessionSpec(KubeStruct, frozen=True, kw_only=True):
    """One connection to the bastion. Deleting the object closes the connection."""

    user: Annotated[str, Meta(max_length=63)]
    # Empty for a login to the console.
    server: Annotated[str, Meta(max_length=63)] = ""
    source: Text = ""
    client: Text = ""
    key: Text = ""
    replica: Annotated[str, Meta(max_length=63)] = ""
    since: Annotated[str, Meta(max_length=64)] = ""


class DevServerSessionStatus(KubeStruct, frozen=True, kw_only=True):
    """Empty: the object is there for as long as the connection."""
