"""Simulated attention at finite size, and its Gaussian equivalent with the same queries, keys, values and output map.

The softmax path draws tokens and weights, forms scores and applies the score function: it uses dimensions, sharing,
ties and `scores.apply`, and neither θ's nor a law. So what checks a law shares no step with what derives it. Only the
Gaussian equivalent, the yardstick for finite-size noise, is built from θ₁ and θ₂.

Heads are drawn one by one, from streams that depend on the seed and on the head alone: memory stays at a few n × n
arrays, the tokens and the accumulated outputs, and numbers do not depend on the order of work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from freeattn.errors import InputError
from freeattn.evidence.accumulators import Accumulator, accumulator
from freeattn.evidence.projections import Projections
from freeattn.evidence.weights import Matrix, Weights, blas_threads, check_sizes, seed_sequence
from freeattn.model.attention import Attention
from freeattn.model.quadrature import thetas

__all__ = ["Sample", "Weights", "check_sizes", "sample", "scores_of", "seed_sequence"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Squared singular values of the centered output M: the n_tokens eigenvalues of M Mᵀ, ascending.

    Attributes:
        softmax: from the real score function (softmax unless the specification says otherwise).
        equivalent: from the Gaussian equivalent with the same queries, keys, values and output map.
        spec, seed: what was drawn; the same seed gives the same numbers on the same machine.

    Zeros are included and exact: a value that double precision cannot tell from zero is set to 0.
    """

    softmax: Matrix
    equivalent: Matrix
    spec: Attention
    seed: int | np.random.SeedSequence

    def __repr__(self) -> str:
        name = self.spec.name or self.spec.output
        return f"<Sample of {name}: softmax and equivalent, {len(self.softmax)} values each>"


def sample(spec: Attention, seed: int | np.random.SeedSequence = 0) -> Sample:
    """Draw one attention layer and its Gaussian equivalent: squared singular values of the matrix spec.output.

    With S_r = Q_r K_rᵀ/√d_key, A_r = scores.apply(S_r, β) and A_r^⊥ = A_r − 11ᵀ/n (normalized scores) or A_r minus the
    mean of its entries, M is [A_1^⊥ V_1, …, A_h^⊥ V_h] W^O ("mha"), the same without W^O ("values"),
    √(n/h)·[A_1^⊥ … A_h^⊥] ("attention") or √(n h)·(mean of A_r^⊥) ("head-sum"); with a residual connection,
    X/√d_model + α times the first. The equivalent puts (√θ₂ S_r + √(θ₁−θ₂) W_r)/n in place of A_r^⊥, W_r iid N(0, 1).

    Raises:
        InputError: when the specification has symbols or no sizes, for a seed that is not one, or when the score
            function gives weights that are not finite.

    Source: arXiv 2610.10033, sections 2-3 and Table D.2 (draws of both with the same Q, K, V, O).
    """
    weights = Weights(spec, seed)
    with blas_threads(weights.n_tokens):
        with np.errstate(all="ignore"):  # a number that is not finite becomes an error, not a warning
            real, equivalent = _outputs(spec, weights)
        if not (np.isfinite(real.matrix).all() and np.isfinite(equivalent.matrix).all()):
            allowed = f"a function whose outputs do not overflow at beta = {spec.beta}"
            raise InputError("scores", spec.scores.name, allowed)
        return Sample(real.squared_singular_values(), equivalent.squared_singular_values(), spec, seed)


def _outputs(spec: Attention, weights: Weights) -> tuple[Accumulator, Accumulator]:
    """M of real attention and of its equivalent, head by head."""
    real, equivalent = accumulator(spec, weights), accumulator(spec, weights)
    layer, n = Projections(spec, weights), weights.n_tokens
    factors = {head.beta: _equivalent_factors(spec, head.beta) for head in weights.heads}
    branch = 1.0
    if spec.residual is not None:
        branch = float(spec.residual)
        for total in (real, equivalent):
            total.add(0, layer.tokens / math.sqrt(weights.d_model))
    for kv_head in range(weights.n_kv_heads):
        keys, values = layer.keys_and_values(kv_head)
        for head in weights.group(kv_head):
            beta = weights.heads[head].beta
            scores = scores_of(layer.queries(head), keys)
            output = weights.output(head) * branch if weights.d_out else None
            real.add(head, _block(_centered(spec, scores, beta), values, output, weights.n_heads))
            signal, noise = factors[beta]
            scores *= signal / n
            scores += noise / n * weights.noise(head)
            equivalent.add(head, _block(scores, values, output, weights.n_heads))
    return real, equivalent


def _equivalent_factors(spec: Attention, beta: float) -> tuple[float, float]:
    values = thetas(spec.scores, beta)
    return math.sqrt(values.theta_2), math.sqrt(max(values.theta_1 - values.theta_2, 0))


def scores_of(queries: Matrix, keys: Matrix) -> Matrix:
    """S = Q Kᵀ/√d_key of one head."""
    scores: Matrix = queries @ keys.T
    scores /= math.sqrt(keys.shape[1])
    return scores


def _centered(spec: Attention, scores: Matrix, beta: float) -> Matrix:
    """A^⊥: attention weights minus 1/n (rows sum to one) or minus the mean of all entries."""
    attention = np.asarray(spec.scores.apply(scores, beta), dtype=np.float64)
    if attention.shape != scores.shape or not np.isfinite(attention).all():
        raise InputError("scores", spec.scores.name, f"a function with finite weights at beta = {beta:g}")
    attention -= 1 / len(attention) if spec.scores.normalized else attention.mean()
    return attention


def _block(centered: Matrix, values: Matrix | None, output: Matrix | None, n_heads: int) -> Matrix:
    """What one head contributes to M; the factor √(n/h) serves "attention" and "head-sum" alike."""
    if values is None:
        block = centered * math.sqrt(len(centered) / n_heads)
    else:
        block = centered @ values
    return block if output is None else block @ output
