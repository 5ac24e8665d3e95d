"""Names and labels of a server's objects."""

from neorion.devservers.model import GROUP

SERVER_LABEL = f"{GROUP}/server"
# Written together with `running: false`, so that a later look knows who stopped the server.
STOPPED_BECAUSE = f"{GROUP}/stopped-because"
# The mark of a home: it outlives its server, so nothing else ties the two together.
HOME_LABEL = f"{GROUP}/home"
SCRIPTS_LABEL = f"{GROUP}/scripts"
SCRIPTS_NAME = "devserver-scripts"
SHM_VOLUME = "shm"
# When a home that lost its server goes. A server of the same name takes the home over, and the mark away.
HOME_DELETE_AFTER = f"{GROUP}/delete-after"

# A hash of the Pod template: ranks of another one are restarted together.
TEMPLATE_LABEL = f"{GROUP}/template"
# Set on each Pod by the StatefulSet controller.
RANK_LABEL = "apps.kubernetes.io/pod-index"

# Marks that a server set its home's storage class. A field that was applied once must stay in the manifest.
HOME_CLASS = f"{GROUP}/storage-class"


def home_name(server: str) -> str:
    return f"{server}-home"


def service_name(server: str) -> str:
    return f"{server}-ssh"


def rank_home_name(server: str, rank: int) -> str:
    """Name that a StatefulSet gives to the claim of a Pod, made from its template `home`."""
    return f"home-{server}-{rank}"


def rank_name(server: str, rank: int) -> str:
    """Name of a rank's Pod, and its host name."""
    return f"{server}-{rank}"


def ranks_name(server: str) -> str:
    """ConfigMap of what every rank reads of the others."""
    return f"{server}-ranks"


def keys_name(server: str) -> str:
    return f"{server}-ssh-keys"


def host_key_name(server: str) -> str:
    return f"{server}-ssh-host"
