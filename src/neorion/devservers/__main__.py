"""The processes of devservers: `python -m neorion.devservers operator …`."""

import sys

from neorion.devservers.app.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
