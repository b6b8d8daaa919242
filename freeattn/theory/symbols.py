"""The symbols of every equation, in one place.

γ_K = h·d_K/n, γ_V = h·d_V/n, γ_O = d_O/n, γ_kv = h_kv·d_K/n; c = θ₂/θ₁; q parametrizes a curve; w = −ψ.
"""

from __future__ import annotations

import sympy as sp

__all__ = [
    "BETA",
    "GAMMA_KEY",
    "GAMMA_KV",
    "GAMMA_OUT",
    "GAMMA_VALUE",
    "HEADS",
    "LAMBDA",
    "PI_FACTOR",
    "SCALE",
    "THETA_1",
    "THETA_2",
    "C",
    "M",
    "Q",
    "S",
    "W",
    "Z",
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
