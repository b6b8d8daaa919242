"""What a law does not hold for, in one line on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from freeattn.cli.group import say

if TYPE_CHECKING:
    from freeattn.model.attention import Attention

__all__ = ["warn_of_the_limit"]

_REMEDY = "the law of the limit is off there, and --finite-size gives that of rows of n_tokens tokens"


def warn_of_the_limit(specs: Sequence[Attention], names: Sequence[str] = ()) -> None:
    """One line for the layers of a command whose law is the limit, but whose rows of weights few tokens dominate.

    Of several layers the first is described, by its name if there are names.
    """
    found = [(at, spec.dominated_rows) for at, spec in enumerate(specs) if not spec.finite_size]
    told = [(at, text) for at, text in found if text is not None]
    if not told:
        return
    first, text = told[0]
    where = f"{names[first]}: " if names else ""
    count = f"{len(told)} of {len(specs)} layers: " if len(specs) > 1 else ""
    say("warning", f"{count}{where}{text}; {_REMEDY}")
