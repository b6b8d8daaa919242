"""Where the limit says little about softmax: few tokens dominate each row of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from freeattn.model.quantities import Quantity, is_known
from freeattn.model.scores import ScoreFunction, Softmax

__all__ = ["dominated_rows", "reliable_beta"]


def reliable_beta(n_tokens: int) -> float:
    """√(log n)/2: the inverse temperature above which softmax rows are dominated by few tokens."""
    return math.sqrt(math.log(n_tokens)) / 2


def dominated_rows(scores: ScoreFunction, betas: Sequence[Quantity], n_tokens: Quantity) -> str | None:
    """What to tell about a layer with softmax some of whose heads have a β above `reliable_beta`; None for others.

    A layer without a number of tokens, or with a symbol there or in β, is not judged.
    """
    if not isinstance(scores.limiting, Softmax) or not isinstance(n_tokens, int):
        return None
    if not all(is_known(beta) for beta in betas):
        return None
    beta, bound = max(betas), reliable_beta(n_tokens)
    if beta <= bound:
        return None
    return (
        f"beta = {float(beta):.4g} is above sqrt(log n)/2 = {bound:.4g} at n_tokens = {n_tokens}: few tokens dominate "
        "each row"
    )
