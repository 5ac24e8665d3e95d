"""The processes of iris: `python -m neorion.iris controller serve …`, `… worker serve …`, `… local …`."""

import sys

from neorion.iris.app.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
