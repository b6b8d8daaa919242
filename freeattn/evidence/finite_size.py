"""How far a layer of finite size is expected to be from its limit, computed without simulating it.

With f the score function and χ ~ N(0, 1), let g = f(βχ)/E f(βχ) (normalized) or f(βχ) (plain), θ₁ = Var g.

- Few tokens: for a row of n iid scores with normalized weights and I_k = E Σ_j A_j^k, the variance of n A_ij is
  V_n = n I_2 − 1 < θ₁ (`model.rows`). For softmax V_n/θ₁ = 1 − C/n + O(1/n²) with C = e^{β²}(2e^{β²} − 1), 12.06 at
  β = 1 (delta method for a ratio of means). A law at finite size has θ₁ = V_n: nothing is lost then.
- Few key dimensions: given its query, a row of scores is N(0, |q|²/d_key) with |q|² ~ χ²(d_key), and so is a column
  given its key: the mean variance differs from θ₁ by O(1/d_key).
- Spread: entries have a fourth cumulant, rows and columns unequal variances. In units of the squared mean, the second
  moment of the law of one head rises by n²I_4/V_n² − 3/n (at most E (g − E g)⁴/(nθ₁²) − 3/n) and by the relative
  variances of row and column variances; h heads side by side dilute all three by h.

The first two are exact for the stated row model, the third to first order; dependence between rows is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from freeattn.model.attention import Attention
from freeattn.model.dominated_rows import few_tokens_loss
from freeattn.model.heads import Heads
from freeattn.model.quadrature import thetas
from freeattn.model.rows import participation, row_variance
from freeattn.model.scores import ScoreFunction

__all__ = ["FiniteSize", "finite_size"]

Vector: TypeAlias = NDArray[np.float64]

_REACH = 9.0  # Gaussian mass beyond 9 standard deviations is below 1e-18
_CHI_NODES = 1201  # trapezoid rule on a Gaussian weight: error below 1e-12 for smooth f, about 1e-5 at a kink
_QUERY_NODES = 400  # midpoints in probability of χ²(d_key)/d_key


@final
@dataclass(frozen=True)
class FiniteSize:
    """Expected relative deviations from the limit at the sizes of a specification.

    Attributes:
        loss: 1 − V_n/θ₁, by which few tokens lower the mean.
        gain: |V_d/θ₁ − 1|, by which few key dimensions move the mean (up, for softmax).
        spread: rise of the second moment, over the squared mean.
    """

    loss: float
    gain: float
    spread: float


def finite_size(spec: Attention) -> FiniteSize:
    """Deviations that are expected of simulated attention with the sizes of the specification.

    Unequal heads count as often as there are of them; what latents, ties and the law of the tokens add is left out.
    """
    heads = spec.n_kv_heads if spec.output == "head-sum" else spec.n_heads
    parts = [(family.count / spec.n_heads, _of_head(spec, family)) for family in spec.families]
    names = ("loss", "gain", "spread")
    loss, gain, spread = (sum(share * getattr(one, name) for share, one in parts) for name in names)
    return FiniteSize(loss, gain, spread if loss == 1 else spread / heads)


def _of_head(spec: Attention, head: Heads) -> FiniteSize:
    """The effects of one head."""
    scores, beta, n = spec.scores.limiting, float(head.beta), spec.n_tokens
    theta_1 = float(thetas(scores, head.beta).theta_1)
    if scores.normalized and theta_1 > n**2:  # V_n ≤ n − 1 always: nothing of the law is left to compare
        return FiniteSize(loss=0.0 if spec.finite_size else 1.0, gain=0.0, spread=1.0)
    rows, columns = _line_variances(scores, beta, head.d_key)
    spread = _kurtosis(scores, beta, n, theta_1) + _relative_variance(rows) + _relative_variance(columns)
    loss = 0.0 if spec.finite_size else few_tokens_loss(scores, head.beta, n)
    return FiniteSize(loss=loss, gain=float(abs(rows.mean() / theta_1 - 1)), spread=spread)


def _kurtosis(scores: ScoreFunction, beta: float, n_tokens: int, theta_1: float) -> float:
    """Rise of the second moment by the fourth cumulant of the entries of one head (not below 0)."""
    chi = np.linspace(-_REACH, _REACH + 4 * beta, _CHI_NODES)
    mass, values = _gaussian_weights(chi), scores.value(beta * chi, np)
    mean = mass @ values
    fourth = mass @ (values - mean) ** 4 / (mean**4 if scores.normalized else 1) / theta_1**2 / n_tokens
    if scores.normalized:  # the sum of a row bounds heavy tails: exact, but it loses its digits when β is small
        square = row_variance(scores, beta, n_tokens) ** 2
        fourth = min(fourth, n_tokens**2 * participation(scores, beta, n_tokens, 4) / square)
    return max(float(fourth) - 3 / n_tokens, 0.0)


def _line_variances(scores: ScoreFunction, beta: float, d_key: int) -> tuple[Vector, Vector]:
    """Variances of rows given |q|² and of columns given |k|², at equally likely values of χ²(d_key)."""
    quantiles = stats.chi2.ppf((np.arange(_QUERY_NODES) + 0.5) / _QUERY_NODES, d_key)
    mean, square = _line_moments(scores, beta * np.sqrt(quantiles / d_key))
    overall = _line_moments(scores, np.array([beta]))[0][0]
    columns = square - 2 * overall * mean + overall**2
    if scores.normalized:
        return square / mean**2 - 1, columns / overall**2
    return columns, columns


def _line_moments(scores: ScoreFunction, betas: Vector) -> tuple[Vector, Vector]:
    chi = np.linspace(-_REACH, _REACH + 2 * float(betas.max()), _CHI_NODES)
    mass = _gaussian_weights(chi)
    values = scores.value(np.outer(betas, chi), np)
    return values @ mass, values**2 @ mass


def _relative_variance(values: Vector) -> float:
    return float(values.var() / values.mean() ** 2)


def _gaussian_weights(chi: Vector) -> Vector:
    step = (chi[-1] - chi[0]) / (len(chi) - 1)  # chi[1] − chi[0] loses three digits to rounding
    weights: Vector = np.exp(-(chi**2) / 2) * step / math.sqrt(2 * math.pi)
    return weights
