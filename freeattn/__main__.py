"""The start of the command `freeattn` and of `python -m freeattn`."""

from __future__ import annotations

import sys

try:
    from freeattn.cli import main
except KeyboardInterrupt:  # Ctrl-C while the command line loads: no traceback, and the exit code that it has later
    sys.stderr.write("freeattn: error: interrupted\n")
    sys.exit(130)

__all__ = ["main"]

if __name__ == "__main__":
    main()
