"""A mean over simulated scores that is known exactly at every size: a test of the simulation itself.

For queries and keys with iid N(0, 1) entries (orthogonal tokens, no latents) entries of S = QKᵀ/√d_key are
N(0, |q|²/d_key) given the query, and |q|² ~ χ²(d_key), so that for d_key > β²

    E (1/n) Σ_j e^{βS_ij − β²/2} = e^{−β²/2} (1 − β²/d_key)^{−d_key/2}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import stats

from freeattn.evidence.projections import Projections
from freeattn.evidence.verify import Estimate
from freeattn.evidence.weights import Matrix, Weights, blas_threads
from freeattn.evidence.written import record_of
from freeattn.model.attention import Attention
from freeattn.model.inputs import OrthogonalInput
from freeattn.model.scores import Softmax

__all__ = ["ScoreIdentity", "exact_score_mean", "identity_applies", "score_identities", "score_means"]

_DOUBT = 1e-3  # probability of a false alarm, over all sizes and heads together


@final
@dataclass(frozen=True)
class ScoreIdentity:
    """The mean of e^{βS − β²/2} of one head: exact, simulated, and whether they agree within chance.

    Attributes:
        n_tokens, d_key, beta: of the head.
        exact: the right side of the identity.
        simulated: the left side over draws, with a 95 % interval.
        passed: whether chance alone would explain the difference (false alarm once in a thousand runs).
    """

    n_tokens: int
    d_key: int
    beta: float
    exact: float
    simulated: Estimate
    passed: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return record_of(self)


def identity_applies(spec: Attention) -> bool:
    """Whether the identity holds for every head, with a finite variance of e^{βS} (d_key > 4β²)."""
    gaussian = isinstance(spec.inputs, OrthogonalInput) and spec.latent is None and spec.query_latent is None
    softmax = isinstance(spec.scores.limiting, Softmax)
    return gaussian and softmax and all(family.d_key > 4 * family.beta**2 for family in spec.families)


def exact_score_mean(beta: float, d_key: int) -> float:
    """e^{−β²/2}(1 − β²/d_key)^{−d_key/2}, for d_key > β²."""
    return math.exp(-(beta**2) / 2 - d_key / 2 * math.log1p(-(beta**2) / d_key))


def score_means(spec: Attention, seed: np.random.SeedSequence) -> Matrix:
    """The mean of e^{βS − β²/2} over all entries, for the first head of each family."""
    weights = Weights(spec, seed)
    layer, found = Projections(spec, weights), []
    with blas_threads(weights.n_tokens):
        for head in _first_heads(spec):
            keys, _ = layer.keys_and_values(head // (weights.n_heads // weights.n_kv_heads))
            beta = weights.heads[head].beta
            scores = layer.queries(head) @ keys.T * (beta / math.sqrt(keys.shape[1]))
            found.append(float(np.exp(scores - beta**2 / 2).mean()))
    return np.array(found)


def score_identities(spec: Attention, draws: Sequence[Matrix], tests: int) -> tuple[ScoreIdentity, ...]:
    """The identity of each family from the means of all draws; `tests` is how many there are in the whole run."""
    found = []
    for family, values in zip(spec.families, np.array(draws).T, strict=True):
        exact = exact_score_mean(float(family.beta), family.d_key)
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        bound = float(stats.t.ppf(1 - _DOUBT / 2 / tests, len(values) - 1)) * error
        estimate = Estimate.of(values.tolist())
        passed = abs(estimate.mean - exact) <= bound
        found.append(ScoreIdentity(spec.n_tokens, family.d_key, float(family.beta), exact, estimate, passed))
    return tuple(found)


def _first_heads(spec: Attention) -> list[int]:
    counts = [family.count for family in spec.families]
    return [sum(counts[:number]) for number in range(len(counts))]
