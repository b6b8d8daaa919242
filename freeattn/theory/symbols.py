"""The symbols of every equation, in one place.

γ_K = h·d_K/n, γ_V = h·d_V/n, γ_O = d_O/n, γ_kv = h_kv·d_K/n; c = θ₂/θ₁; q parametrizes a curve; w = −ψ.

Sizes, for words in letters: n tokens, d model, d_K, d_V, d_O widths, h and h_kv heads; d_P is the part of a key that
carries positions (then d_K is the rest of it), r and r_Q are the ranks of latents; ρ correlates keys and values.
"""

from __future__ import annotations

import sympy as sp

__all__ = [
    "BETA",
    "D_KEY",
    "D_MODEL",
    "D_OUT",
    "D_POSITION",
    "D_VALUE",
    "GAMMA_KEY",
    "GAMMA_KV",
    "GAMMA_OUT",
    "GAMMA_VALUE",
    "HEADS",
    "KV_HEADS",
    "LAMBDA",
    "PI_FACTOR",
    "PI_REST",
    "QUERY_RANK",
    "RANK",
    "RHO",
    "SCALE",
    "THETA_1",
    "THETA_2",
    "TOKENS",
    "C",
    "M",
    "Q",
    "S",
    "W",
    "Z",
    "numbered",
]

GAMMA_KEY = sp.Symbol("gamma_K", positive=True)
GAMMA_KV = sp.Symbol("gamma_kv", positive=True)
GAMMA_VALUE = sp.Symbol("gamma_V", positive=True)
GAMMA_OUT = sp.Symbol("gamma_O", positive=True)
HEADS = sp.Symbol("h", positive=True)
THETA_1 = sp.Symbol("theta_1", positive=True)
THETA_2 = sp.Symbol("theta_2", nonnegative=True)
C = sp.Symbol("c", nonnegative=True)
BETA = sp.Symbol("beta", positive=True)
SCALE = sp.Symbol("s", positive=True)
Z = sp.Symbol("z")
M = sp.Symbol("m")
LAMBDA = sp.Symbol("lambda", positive=True)
W = sp.Symbol("w")
S = sp.Symbol("S")
Q = sp.Symbol("q")
PI_FACTOR = sp.Symbol("Pi")
PI_REST = sp.Symbol("Pi_1")  # Π(z)/(1 + z)
TOKENS = sp.Symbol("n", positive=True)
D_MODEL = sp.Symbol("d", positive=True)
D_KEY = sp.Symbol("d_K", positive=True)
D_VALUE = sp.Symbol("d_V", positive=True)
D_OUT = sp.Symbol("d_O", positive=True)
D_POSITION = sp.Symbol("d_P", positive=True)
KV_HEADS = sp.Symbol("h_kv", positive=True)
RANK = sp.Symbol("r", positive=True)
QUERY_RANK = sp.Symbol("r_Q", positive=True)
RHO = sp.Symbol("rho", real=True)


def numbered(symbol: sp.Symbol, number: int) -> sp.Symbol:
    """The symbol of family number 1, 2, … of unequal heads: d_K1 from d_K."""
    return sp.Symbol(f"{symbol.name}{'_' if symbol.name.startswith('theta') else ''}{number}", **symbol.assumptions0)
