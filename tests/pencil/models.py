"""Models that several tests of this folder share: attention heads as sums of words."""

from __future__ import annotations

import sympy as sp

from freeattn.model.expression import Expression, gaussian
from freeattn.model.letters import copies, space
from freeattn.theory import symbols as sym

n, d, d_key, d_value, d_out, h, G, q = sp.symbols("n d d_key d_value d_out h G q", positive=True)
theta_1, theta_2 = sym.THETA_1, sym.THETA_2
TOKENS, MODEL, KEY, VALUE, OUT = (space(str(size), size) for size in (n, d, d_key, d_value, d_out))


def orthogonal(tied: bool = False, heads=None, shared=None) -> Expression:
    """Σ_r (√θ₂ Q_r K_rᵀ/√(d_key n) + √(θ₁−θ₂) W_r/√n) V_r O_r/√n, O of variance
    1/(width × number of heads).

    `shared` is the family that keys and values belong to when groups of heads share them.
    """
    heads = heads or copies("heads", h)
    width, size = (KEY, d_key) if tied else (VALUE, d_value)
    query, key = gaussian("Q", TOKENS, KEY, 1, heads), gaussian("K", TOKENS, KEY, 1, shared or heads)
    noise = gaussian("W", TOKENS, TOKENS, (theta_1 - theta_2) / n, heads)
    value = key if tied else gaussian("V", TOKENS, VALUE, 1, shared or heads)
    number = sp.Mul(*(family.count for family in heads.chain))
    output = gaussian("O", width, OUT, 1 / (number * size), heads)
    total = heads.sum((sp.sqrt(theta_2) / sp.sqrt(d_key * n) * query @ key.T + noise) @ value @ output / sp.sqrt(n))
    return shared.sum(total) if shared else total


def gaussian_input(heads=None, sign: int = 1) -> Expression:
    """The same with input X of independent entries: Q = X W^Q and so on."""
    heads = heads or copies("heads", h)
    x = gaussian("X", TOKENS, MODEL)
    query, key = gaussian("WQ", MODEL, KEY, 1 / d, heads), gaussian("WK", MODEL, KEY, 1 / d, heads)
    value, noise = gaussian("WV", MODEL, VALUE, 1 / d, heads), gaussian("W", TOKENS, TOKENS, 1, heads)
    output = gaussian("O", VALUE, OUT, 1 / (heads.count * d_value), heads)
    scores = sign * sp.sqrt(theta_2) / (n * sp.sqrt(d_key)) * x @ query @ key.T @ x.T
    return heads.sum((scores + sp.sqrt(theta_1 - theta_2) / n * noise) @ x @ value @ output)
