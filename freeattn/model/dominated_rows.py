"""Where the limit says little about softmax: few tokens dominate each row of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from freeattn.model.quadrature import thetas
from freeattn.model.quantities import Quantity, is_known
from freeattn.model.rows import row_variance
from freeattn.model.scores import ScoreFunction, Softmax

__all__ = ["DominatedRows", "dominated_rows", "few_tokens_loss", "reliable_beta"]

_SHAPE = (  # measured: the table of docs/finite-size.md
    "another shape (relative W1 of 0.05 to 0.09 at beta = 1.5 and 2, n = 1024; 0.12 to 0.33 without values and output "
    "map to mix the rows)"
)
_REMEDY = "finite size (finite_size=True, --finite-size)"
_OF_SHAPE = "what depends on the shape (condition number, ridge, flow)"


def reliable_beta(n_tokens: int) -> float:
    """√(log n)/2: the inverse temperature above which softmax rows are dominated by few tokens."""
    return math.sqrt(math.log(n_tokens)) / 2


def few_tokens_loss(scores: ScoreFunction, beta: Quantity, n_tokens: int) -> float:
    """1 − V_n/θ₁, the share of θ₁ that rows of n tokens lack: V_n = n I_n − 1; 0 for scores that are not normalized."""
    if not scores.normalized:
        return 0.0
    theta_1 = float(thetas(scores, beta).theta_1)
    if theta_1 > n_tokens**2:  # V_n ≤ n − 1 always: nothing is left
        return 1.0
    return 1 - row_variance(scores, float(beta), n_tokens) / theta_1


@final
@dataclass(frozen=True)
class DominatedRows:
    """A layer with softmax in which few tokens dominate each row of weights: β above √(log n)/2 in some head.

    `str` of it is one line.

    Attributes:
        beta: the largest β of the heads.
        bound: √(log n)/2.
        n_tokens: n.
        scores: the score function of the limit.
        finite_size: whether the layer has the θ's of rows of n tokens already.
        scales_mean: whether the mean of the law is proportional to θ₁.
    """

    beta: Quantity
    bound: float
    n_tokens: int
    scores: ScoreFunction
    finite_size: bool
    scales_mean: bool

    def __str__(self) -> str:
        return (
            f"beta = {float(self.beta):.4g} is above sqrt(log n)/2 = {self.bound:.4g} at n_tokens = {self.n_tokens}: "
            "few tokens dominate each row"
        )

    @property
    def theta_ratio(self) -> float:
        """θ₁ of rows of n tokens over θ₁ of the limit, at the largest β, by one quadrature; 0 where it is below 1/n."""
        return 1 - few_tokens_loss(self.scores, self.beta, self.n_tokens)

    @property
    def warning(self) -> str:
        """One line: what is the matter, by how much the law is off, and what finite size repairs and what it does not.
        """
        if self.finite_size:
            return f"{self}; the law at finite size has their mean, but softmax has {_SHAPE}: {_OF_SHAPE} is off"
        ratio = self.theta_ratio
        size = f"about {ratio:.2g}" if ratio else f"less than {1 / self.n_tokens:.2g}"
        of_law = "mean" if self.scales_mean else "theta_1"
        return (
            f"{self}; the law of the limit is off there: expect {size} times its {of_law}, and {_SHAPE}; {_REMEDY} "
            f"repairs the mean, not {_OF_SHAPE}"
        )


def dominated_rows(
    scores: ScoreFunction, betas: Sequence[Quantity], n_tokens: Quantity, scales_mean: bool
) -> DominatedRows | None:
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
    at_finite_size = scores.n_tokens is not None
    return DominatedRows(beta, bound, n_tokens, scores.limiting, at_finite_size, scales_mean)
