"""What a law does not hold for, in one line on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from freeattn.cli.group import say

if TYPE_CHECKING:
    from freeattn.model.attention import Attention

__all__ = ["warn_of_dominated_rows"]


def warn_of_dominated_rows(specs: Sequence[Attention], names: Sequence[str] = ()) -> None:
    """One line for the layers of a command whose rows of weights few tokens dominate, and one for those at finite size.

    Of several layers the first is described, by its name if there are names.
    """
    for finite in (False, True):
        found = [(at, spec.dominated_rows) for at, spec in enumerate(specs) if spec.finite_size is finite]
        told = [(at, dominated) for at, dominated in found if dominated is not None]
        if told:
            first, dominated = told[0]
            where = f"{names[first]}: " if names else ""
            count = f"{len(told)} of {len(specs)} layers: " if len(specs) > 1 else ""
            say("warning", f"{count}{where}{dominated.warning}")
