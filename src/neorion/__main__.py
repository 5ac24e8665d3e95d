"""`python -m neorion`."""

from neorion.cli import main

if __name__ == "__main__":
    main()
