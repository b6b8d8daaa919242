"""`python -m freeattn` is the `freeattn` command."""

from freeattn.cli import main

if __name__ == "__main__":
    main()
