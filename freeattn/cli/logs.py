"""What the package logs, as lines on stderr like all others: that loops are compiled, and the time that it takes."""

from __future__ import annotations

import logging
from typing import final

from freeattn.cli.group import say

__all__ = ["say_logs"]


@final
class _Said(logging.Handler):
    """One line on stderr for each record."""

    def emit(self, record: logging.LogRecord) -> None:
        say("note", record.getMessage())


def say_logs() -> None:
    """Called once, where the process starts."""
    logging.getLogger("freeattn").addHandler(_Said(logging.WARNING))
