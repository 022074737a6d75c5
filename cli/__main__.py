"""`python -m tfm.cli` is the same as `tfm`."""

from .main import main

if __name__ == "__main__":
    main()
