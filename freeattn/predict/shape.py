"""The shape of a spectrum in single numbers: condition number, effective ranks, and the gap to the leading direction.

With ν the law of mean one, x₋ and x₊ the least and the greatest point of its support off 0:

| number | definition | limit |
|---|---|---|
| condition number | s_max/s_min over nonzero singular values | √(x₊/x₋) |
| stable rank / n | ‖M‖_F²/(n ‖M‖²) | 1/x₊ |
| participation ratio / n | (Σ s_i²)²/(n Σ s_i⁴) | 1/m₂ |
| entropy rank / n | exp(−Σ p_i ln p_i)/n, p_i = s_i²/Σ s_j² | exp(−∫ x ln x dν) |
| rank / n | nonzero singular values over n | 1 − ν({0}) |

These are of the centered output; its largest singular value is taken as the edge of the bulk. The uncentered output has
the same bulk and one singular value more, s₁, above it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.quadrature import thetas
from freeattn.model.quantities import is_infinite
from freeattn.numerics.law import SpectralLaw
from freeattn.predict.inputs import atom_at_zero, mean_one_integrals, spectral_law

__all__ = [
    "attention_stable_rank",
    "condition_number",
    "entropy_rank",
    "leading_singular_value",
    "participation_ratio",
    "rank_fraction",
    "spike_gap",
    "stable_rank",
]

Array = NDArray[np.float64]

_THETA_DIGITS = 20


def condition_number(law: SpectralLaw) -> float:
    """s_max/s_min = √(x₊/x₋) over the nonzero singular values; infinite when the density starts at 0.

    Of M, that is; M Mᵀ has its square.
    """
    low, high = _ends(spectral_law(law))
    return math.sqrt(high / low) if low > 0 else math.inf


def stable_rank(law: SpectralLaw) -> float:
    """Stable rank over n of the centered output: ‖M‖_F²/(n ‖M‖²) → 1/x₊, the mean over the right edge."""
    law = spectral_law(law)
    return law.mean / _ends(law)[1]


def participation_ratio(law: SpectralLaw) -> float:
    """(Σ s_i²)²/(n Σ s_i⁴) → m₁²/m₂."""
    first, second = spectral_law(law).moments(2)
    return float(first**2 / second)


def entropy_rank(law: SpectralLaw) -> float:
    """Effective rank over n by entropy: exp(−Σ p_i ln p_i)/n with p_i = s_i²/Σ s_j² → exp(−∫ x ln x dν)."""
    integrals = mean_one_integrals(spectral_law(law))

    def entropy(x: Array, members: Array) -> Array:
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0) + 0 * members

    return float(np.exp(-integrals(entropy, np.zeros(1))[0]))


def rank_fraction(law: SpectralLaw) -> Fraction | float:
    """Rank over n, 1 − ν({0}); exact where the ratios are."""
    return 1 - atom_at_zero(spectral_law(law))


def attention_stable_rank(spec: Attention) -> float:
    """‖A‖_F²/s₁(A)² of an attention matrix that is not centered: 1 + θ₁, which is e^{β²} for softmax.

    ‖√n A_r^⊥‖_F²/n → θ₁ and s₁(A_r) → 1, the value of its rank-one mean; the same holds for [A_1 … A_h]. The mean of h
    heads has 1 + θ₁/h.

    Raises:
        InputError: for another output than "attention" and "head-sum", whose matrices hold values.
        NotCoveredError: for scores whose rows are not divided by their sum.
    """
    if spec.output not in ("attention", "head-sum"):
        raise InputError("output", spec.output, '"attention" or "head-sum": a matrix of attention weights')
    _refuse_scores(spec)
    theta = float(thetas(spec.scores, spec.beta, _THETA_DIGITS).theta_1)
    return 1 + (theta if spec.output == "attention" else theta / float(spec.n_heads))


def leading_singular_value(spec: Attention) -> float:
    """s₁ of the output that is not centered, to leading order for many tokens.

    The rank-one mean of the attention matrices contributes 1·(1ᵀ[V_1 … V_h]W^O)/n, so that
    s₁/√d_O = ‖1ᵀ[V_1 … V_h]W^O‖/√(n d_O) + o(1) → 1 for weights of independent entries (arXiv 2610.10033, eq. 3.7):

    | output | s₁² |
    |---|---|
    | mha | d_out |
    | values | n_heads·d_value |
    | attention, √(n/h)·[A_1 … A_h] | n |
    | head-sum, √(nh)·(mean of A_r) | n h |

    times the squares of value_scale and output_scale.

    Raises:
        InputError: for a layer without sizes.
        NotCoveredError: for scores whose rows are not divided by their sum, for an output map made of keys that are the
            values too (1ᵀKKᵀ has no independent factors), and for a residual connection.
    """
    if spec.n_tokens is None:
        raise InputError("n_tokens", None, "a layer with sizes: spec.with_sizes(n_tokens)")
    return math.sqrt(_leading_share(spec) * float(spec.n_tokens))


def spike_gap(law: SpectralLaw, n_tokens: int | None = None) -> float:
    """s₁²/s₂² of the output that is not centered: leading singular value over the edge of the bulk, squared.

    For mha with independent keys and values it is n/(θ₁ x₊), whatever the widths.

    Args:
        law: the law of an `Attention`.
        n_tokens: for a layer without sizes.

    Raises:
        InputError: for a law that is not one of a layer, or without a number of tokens.
        NotCoveredError: as `leading_singular_value`.
    """
    spec = spectral_law(law).spec
    if not isinstance(spec, Attention):
        raise InputError("law", law, "the law of an Attention: a mean of attention weights makes the leading direction")
    tokens = spec.n_tokens if n_tokens is None else n_tokens
    if tokens is None or (spec.n_tokens is not None and tokens != spec.n_tokens):
        raise InputError("n_tokens", n_tokens, "a number of tokens, only for a layer without sizes")
    if getattr(law._exact, "mean_one", False):
        raise InputError("law", law, "the law of the layer itself, not divided by its mean")
    return _leading_share(spec) * float(tokens) / _ends(law)[1]


def _leading_share(spec: Attention) -> float:
    """s₁²/n."""
    _refuse_scores(spec)
    if spec.tie.value != "none" and spec.tie.output == "key":
        raise NotCoveredError("the leading singular value with values and the output map both built from the keys")
    if spec.residual is not None:
        raise NotCoveredError("the leading singular value of a layer with a residual connection")
    scale = float(spec.value_scale) ** 2 * float(spec.output_scale) ** 2
    shares = {"mha": spec.gamma_out, "values": spec.gamma_value, "attention": 1, "head-sum": spec.n_heads}
    if is_infinite(shares[spec.output]):
        raise NotCoveredError("the leading singular value of a head sum over infinitely many heads")
    return scale * float(shares[spec.output])


def _refuse_scores(spec: Attention) -> None:
    if not spec.scores.normalized:
        raise NotCoveredError(f"the rank-one mean of {spec.scores.name} attention: its rows do not sum to one")


def _ends(law: SpectralLaw) -> tuple[float, float]:
    """The least and the greatest point of the support off 0, in the unit of the law."""
    bands = law.edges
    atoms = [atom.location for atom in law.atoms if atom.location > 0]
    return min([a for a, _ in bands] + atoms), max([b for _, b in bands] + atoms)
