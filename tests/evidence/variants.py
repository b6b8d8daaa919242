"""One layer for each variant: sizes at which a draw of softmax takes seconds, and the law's numbers at those sizes."""

from __future__ import annotations

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.model.heads import Heads
from freeattn.model.inputs import FeatureCovariance
from freeattn.model.latent import Latent
from freeattn.model.quadrature import thetas
from freeattn.model.ties import KeyValueCorrelation, Ties
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.numerics.dyson_tables import number_of
from freeattn.theory.attention_words import words_of
from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import moments

N = 1500
BETA = sp.Rational(4, 5)  # few tokens take C/n of the mean: 0.35 % here, 0.8 % at β = 1, too near to 1 %
WIDE = {"beta": BETA, "n_tokens": N, "d_model": 2000, "n_heads": 3, "d_key": 600, "d_value": 500,
        "d_out": 1200}
GAUSSIAN = {**WIDE, "inputs": "gaussian"}
TALL = {**GAUSSIAN, "d_model": 1000}
TIED = {"beta": BETA, "n_tokens": N, "d_model": 2000, "n_heads": 3, "d_key": 600}
COVARIANCE = FeatureCovariance((1, 4, 10), (5, 3, 2))
RHO = KeyValueCorrelation(sp.Rational(-3, 5))
HEADS = [Heads(1, 900, 300), Heads(2, 400, 600, sp.Rational(1, 2))]
UNLIKE = {"beta": BETA, "n_tokens": N, "d_model": 2000, "d_out": 1200, "heads": HEADS}

LAYERS = {
    "gaussian input": GAUSSIAN,
    "gaussian input, more tokens than features": TALL,
    "gaussian input, keys are values": {**TIED, "inputs": "gaussian", "tie": "key-value", "d_out": 1200},
    "gaussian input, shared keys": {**GAUSSIAN, "n_heads": 4, "n_kv_heads": 2},
    "feature covariance": {**WIDE, "inputs": COVARIANCE},
    "feature covariance, output-key": {**TIED, "inputs": COVARIANCE, "tie": "output-key"},
    "correlated values": {**TIED, "tie": RHO, "d_out": 1200},
    "correlated values, gaussian input": {**TIED, "inputs": "gaussian", "tie": RHO, "d_out": 1200},
    "output-key": {**TIED, "tie": "output-key"},
    "output-key, square": {**TIED, "tie": "output-key", "d_model": N},
    "output-key, gaussian input": {**TIED, "inputs": "gaussian", "tie": "output-key"},
    "output-key, shared keys": {**TIED, "inputs": "gaussian", "tie": "output-key", "n_heads": 4, "n_kv_heads": 2},
    "key-value-output": {**TIED, "tie": "key-value-output"},
    "key-value-output, gaussian input": {**TIED, "inputs": "gaussian", "tie": "key-value-output"},
    "correlated values, output-key": {**TIED, "tie": Ties(value=RHO, output="key")},
    "latent": {**WIDE, "latent": Latent(900)},
    "latent of each head": {**WIDE, "latent": Latent(900, shared=False)},
    "latent, gaussian input": {**GAUSSIAN, "latent": Latent(900)},
    "latent, normalized": {**WIDE, "latent": Latent(900, normalized=True)},
    "latent, keys are values": {**TIED, "latent": Latent(900), "tie": "key-value", "d_out": 1200},
    "query latent": {**WIDE, "query_latent": Latent(900)},
    "query latent of each head": {**WIDE, "query_latent": Latent(900, shared=False)},
    "latents and positions": {
        **WIDE, "latent": Latent(500, normalized=True), "query_latent": Latent(900, normalized=True),
        "position_width": 200,
    },
    "latents and positions, gaussian input": {
        **GAUSSIAN, "latent": Latent(500), "query_latent": Latent(900), "position_width": 200,
    },
    "unequal heads": UNLIKE,
    "unequal heads, gaussian input": {**UNLIKE, "inputs": "gaussian"},
    "residual": {**WIDE, "d_out": 2000, "residual": sp.Rational(1, 2)},
    "residual, gaussian input": {**GAUSSIAN, "d_out": 2000, "residual": sp.Rational(1, 2)},
    "residual, output-key": {**TIED, "tie": "output-key", "residual": sp.Rational(1, 2)},
    "head sum, gaussian input, shared keys": {
        **TIED, "inputs": "gaussian", "output": "head-sum", "n_heads": 4, "n_kv_heads": 2,
    },
    "values, gaussian input": {**TIED, "d_value": 500, "inputs": "gaussian", "output": "values"},
    "values, latents and positions": {
        **TIED, "d_value": 500, "output": "values", "latent": Latent(500), "position_width": 200,
    },
    "attention, gaussian input": {**TIED, "inputs": "gaussian", "output": "attention"},
}


def layer(name: str, **changes) -> Attention:
    """The layer of a variant."""
    return Attention(**{**LAYERS[name], **changes})


def numbers_of(words) -> dict:
    """A number for every symbol of the words of a layer."""
    found = dict(words.values)
    for theta in words.thetas:
        both = thetas(theta.scores, theta.beta, 30)
        found[theta.theta_1] = sp.Float(str(both.theta_1), 30)
        found[theta.theta_2] = sp.Float(str(both.theta_2), 30)
    return found


class Law:
    """m(z) and moments of the words of a layer."""

    def __init__(self, spec: Attention) -> None:
        words = words_of(spec)
        self._system, self._numbers = dyson_of(words.expression), numbers_of(words)
        self._solver = DysonSolver(self._system, self._numbers)

    def stieltjes(self, z):
        return self._solver.stieltjes(z)

    def moments(self, order: int) -> list[float]:
        return [number_of(moment, self._numbers) for moment in moments(self._system, order)]
