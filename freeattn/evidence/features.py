"""The features that a reader of real softmax attention sees, and how well it reads them.

F = MHA/√m (n_tokens × d_out) is the output of the layer itself, mean included, in the unit m, the mean of its law. Both
readouts are exact expectations over targets for the features that were drawn; no law enters beyond the number m:

- ridge regression of y = √n F ϑ + ε on √n F with penalty λ, ϑ ~ N(0, I/d_out), ε ~ N(0, σ² I): with x_1, …, x_n the
  eigenvalues of F Fᵀ, E‖v̂ − ϑ‖² = 1 − n/d_out + (1/d_out) Σ λ²/(x_i + λ)² + (σ²/n) Σ x_i/(x_i + λ)²;
- gradient flow on ½‖F v − y‖² from v = 0, y uniform on the sphere ‖y‖² = n of centered targets (1ᵀy = 0): with unit
  eigenvectors u_i and p_i = (1 − (1ᵀu_i)²/n)/(n − 1), the relative loss is L(t) = Σ p_i e^{−2 t x_i}.

Source: arXiv 2610.10033, section 5 and appendix C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize

from freeattn.errors import InputError
from freeattn.evidence.projections import Projections
from freeattn.evidence.sampling import scores_of
from freeattn.evidence.weights import Matrix, Weights, blas_threads
from freeattn.model.attention import Attention

__all__ = ["Features", "draw_features"]

_ROUNDING = 1e-12  # relative to the largest eigenvalue: eigenvalues of a Gram matrix below it are zero


@final
@dataclass(frozen=True, eq=False)
class Features:
    """What the readouts need of one draw of MHA.

    Attributes:
        values: the n_tokens eigenvalues of MHA MHAᵀ, ascending.
        shares: p_i, the mean share of a centered target along each eigenvector; their sum is 1.
        d_out: number of features.
    """

    values: Matrix
    shares: Matrix
    d_out: int

    def ridge_error(self, unit: float, penalty: float, noise: float) -> float:
        """E‖v̂ − ϑ‖² of ridge regression on MHA/√unit; `noise` is σ²."""
        x = self.values / unit
        n = len(x)
        kept = 1 - n / self.d_out + float(np.sum((penalty / (x + penalty)) ** 2)) / self.d_out
        return kept + noise * float(np.mean(x / (x + penalty) ** 2))

    def loss(self, unit: float, times: ArrayLike) -> Matrix:
        """L(t) of gradient flow on MHA/√unit, for an array of times."""
        t = np.asarray(times, dtype=float)
        decayed: Matrix = np.exp(-2 * t[..., None] * (self.values / unit)) @ self.shares
        return decayed

    @property
    def plateau(self) -> float:
        """L(∞): the share of targets that no feature reaches."""
        return float(self.shares[self.values == 0].sum())

    def arrival_time(self, unit: float, level: float) -> float:
        """The time at which L(t) = level; infinite when the plateau is not below it."""
        if self.plateau >= level:
            return math.inf
        slowest = float(self.values[self.values > 0][0]) / unit
        latest = -math.log(level - self.plateau) / (2 * slowest)  # the loss is below plateau + e^{−2 t x_min}
        found = optimize.brentq(lambda t: float(self.loss(unit, t)) - level, 0.0, latest + 1, xtol=1e-12 * latest)
        return float(found)


def draw_features(spec: Attention, seed: int | np.random.SeedSequence) -> Features:
    """Draw the output of one layer with its mean: softmax attention alone, no equivalent.

    MHA = [A_1 V_1, …, A_h V_h] W^O is not formed: with the values side by side in C and all rows of W^O in B,
    MHA MHAᵀ = C (B Bᵀ) Cᵀ, which has no dimension d_out.

    Raises:
        InputError: for a layer that has no W^O, or a residual connection, and as `sampling.sample`.

    Source: arXiv 2610.10033, section 2.
    """
    weights = Weights(spec, seed)
    if not spec.has_output_map or spec.residual is not None:
        raise InputError("output", spec.output, '"mha" without a residual connection, to read features')
    with blas_threads(weights.n_tokens):
        values, shares = _decomposed(_gram(spec, weights))
    return Features(values, shares, weights.d_out)


def _gram(spec: Attention, weights: Weights) -> Matrix:
    """MHA MHAᵀ."""
    layer = Projections(spec, weights)
    mixed, rows = [], []
    for kv_head in range(weights.n_kv_heads):
        keys, values = layer.keys_and_values(kv_head)
        for head in weights.group(kv_head):
            attention = spec.scores.apply(scores_of(layer.queries(head), keys), weights.heads[head].beta)
            mixed.append(attention @ values)
            rows.append(weights.output(head))
    output = np.vstack(rows)
    values = np.hstack(mixed)
    gram: Matrix = values @ (output @ output.T) @ values.T
    return (gram + gram.T) / 2


def _decomposed(gram: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues, zeros exact, and the shares of centered targets."""
    n = len(gram)
    values, vectors = linalg.eigh(gram, driver="evd", overwrite_a=True, check_finite=True)
    values[values < _ROUNDING * values[-1]] = 0.0
    shares = (1 - vectors.sum(axis=0) ** 2 / n) / (n - 1)
    return values, np.clip(shares, 0.0, None)
