"""How a server's objects are named and marked."""

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

# That a server named the class of its home: whoever applied a field once has to name it for ever.
HOME_CLASS = f"{GROUP}/storage-class"


def home_name(server: str) -> str:
    return f"{server}-home"


def service_name(server: str) -> str:
    return f"{server}-ssh"


def keys_name(server: str) -> str:
    return f"{server}-ssh-keys"


def host_key_name(server: str) -> str:
    return f"{server}-ssh-host"
