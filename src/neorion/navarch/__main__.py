"""`python -m neorion.navarch` is `navarch`."""

from neorion.navarch.cli import main

if __name__ == "__main__":
    main()
