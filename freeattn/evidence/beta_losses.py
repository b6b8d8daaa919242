"""How much of the mean of the law softmax misses as β grows: once β is near √log n few tokens dominate each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from freeattn.evidence import compare
from freeattn.evidence.finite_size import finite_size
from freeattn.evidence.verify import Estimate
from freeattn.evidence.written import record_of
from freeattn.model.attention import Attention
from freeattn.runs import Result

__all__ = ["BetaLoss", "beta_loss"]


@final
@dataclass(frozen=True)
class BetaLoss:
    """How much of the mean of the law softmax misses at one β and n.

    Attributes:
        beta, n_tokens: where.
        scaled_beta: β/√log n.
        loss: 1 − mean of softmax over that of the law of the limit.
        expected: 1 − V_n/θ₁, without simulating (`finite_size`).
        relative_w1: softmax to its equivalent, over the mean of the law.
    """

    beta: float
    n_tokens: int
    scaled_beta: float
    loss: Estimate
    expected: float
    relative_w1: Estimate

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return record_of(self)


def beta_loss(spec: Attention, mean: float, draws: Sequence[Result]) -> BetaLoss:
    """The loss of one layer, from its draws and the mean of its law in the limit."""
    losses = [1 - float(one["softmax"].mean()) / mean for one in draws]
    apart = [compare.relative_w1_between(one["softmax"], one["equivalent"], mean) for one in draws]
    beta = float(spec.beta)
    return BetaLoss(
        beta, spec.n_tokens, beta / math.sqrt(math.log(spec.n_tokens)), Estimate.of(losses), finite_size(spec).loss,
        Estimate.of(apart),
    )
