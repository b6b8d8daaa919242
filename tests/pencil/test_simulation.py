"""Random matrices against the Dyson equation, for models that no closed law covers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sympy as sp
from models import KEY, MODEL, OUT, TOKENS, d, d_key, d_out, h, n, theta_1, theta_2

from freeattn.model.expression import gaussian, wigner
from freeattn.model.letters import copies, space
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.numerics.dyson_tables import number_of
from freeattn.theory.dyson import dyson_of
from freeattn.theory.field import as_expression
from freeattn.theory.pencil import count_of, size_of

SIZES = {n: 300, d: 360, d_key: 60, d_out: 240, h: 3, theta_1: sp.E - 1, theta_2: 1}
HEADS = copies("heads", h)
X = gaussian("X", TOKENS, MODEL)
QUERY, MAP = gaussian("WQ", MODEL, KEY, 1 / d, HEADS), gaussian("WK", MODEL, KEY, 1 / d, HEADS)
NOISE = gaussian("W", TOKENS, TOKENS, (theta_1 - theta_2) / n**2, HEADS)


def scores(keys):
    return sp.sqrt(theta_2 / d_key) / n * X @ QUERY @ keys.T @ X.T + NOISE


def all_tied():
    """K = V and O = Kᵀ: traces between heads survive."""
    return HEADS.sum(scores(MAP) @ X @ MAP @ (sp.sqrt(d / (h * d_key)) * MAP.T))


def shared_latent():
    """K = X D U_K, V = X D U_V with one D for all heads."""
    rank = space("rank", 120)
    down = gaussian("D", MODEL, rank, 1 / d)
    up_key, up_value = (gaussian(name, rank, KEY, sp.Rational(1, 120), HEADS) for name in ("UK", "UV"))
    return HEADS.sum(scores(down @ up_key) @ X @ down @ up_value @ gaussian("O", KEY, OUT, 1 / (h * d_key), HEADS))


def residual():
    """X/√n and attention added up."""
    value, out = gaussian("WV", MODEL, KEY, 1 / d, HEADS), gaussian("O", KEY, MODEL, 1 / (h * d_key), HEADS)
    return X / sp.sqrt(n) + HEADS.sum(scores(MAP) @ X @ value @ out)


def symmetric():
    """Wigner letters, repeated and between others."""
    s = wigner("S", TOKENS, 1 / n)
    return s @ s + s @ X @ X.T / d


def sampled(expression, seed):
    """Eigenvalues of M Mᵀ for one draw of all letters, every copy on its own."""
    rng, drawn = np.random.default_rng(seed), {}

    def number(value):
        return number_of(as_expression(value), SIZES)

    def matrix(factor, copy):
        letter = factor.letter
        if (letter, copy) not in drawn:
            shape = [int(number(size_of(place))) for place in (letter.rows, letter.columns)]
            entries = np.sqrt(number(letter.variance)) * rng.normal(size=shape)
            drawn[letter, copy] = np.triu(entries) + np.triu(entries, 1).T if letter.symmetric else entries
        return drawn[letter, copy].T if factor.transposed else drawn[letter, copy]

    total = 0
    for term in expression.terms:
        for choice in product(*(range(int(number(count_of(s.family)))) for s in term.sums)):
            word = np.eye(int(number(size_of(expression.rows))))
            for place, factor in enumerate(term.word):
                bound = {s.family: c for s, c in zip(term.sums, choice, strict=True) if s.start <= place < s.stop}
                word = word @ matrix(factor, tuple(bound[family] for family in factor.letter.chain))
            total = total + number(term.coefficient) * word
    return np.linalg.eigvalsh(total @ total.T)


@pytest.mark.slow
@pytest.mark.parametrize("model", [all_tied, shared_latent, residual, symmetric])
def test_resolvent_of_random_matrices(model):
    expression = model()
    eigenvalues = np.concatenate([sampled(expression, seed) for seed in range(3)])
    z = np.mean(eigenvalues) * np.array([0.2 + 0.3j, 1 + 0.4j, 2 + 0.6j])
    simulated = np.mean(1 / (eigenvalues[:, None] - z), axis=0)
    law = DysonSolver(dyson_of(expression), SIZES).stieltjes(z)
    assert np.max(np.abs(law / simulated - 1)) < 0.02


def test_traces_between_heads_survive_when_keys_are_values_and_outputs():
    names = [str(unknown) for unknown in dyson_of(all_tied()).unknowns]
    assert "g_w3_w3_across_heads" in names
