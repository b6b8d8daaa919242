"""Hard edges: the power that a law states is the slope of log ρ between x = 1e-12 and 1e-20, by both routes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa

R = fa.space("r", 1)
A, B, D = (fa.gaussian(name, R, R) for name in "ABD")
RATIOS = fa.Attention.from_ratios


def slope(law):
    near, far = law.density([1e-20, 1e-12])
    return np.log(near / far) / np.log(1e-8)


@pytest.mark.parametrize(("spec", "order"), [
    (RATIOS(1, None, None, n_heads=1, output="attention"), 2),
    (RATIOS(2, 1, None, n_heads=1, output="values"), 3),
    (RATIOS(1, 1, 1, n_heads=1), 4),
    (RATIOS(2, 1, 1, n_heads=3), 3),
    (RATIOS(3, 2, 1, n_heads=4), 2),
    (RATIOS(1, None, 1, n_heads=2, tie="key-value"), 3),
    (RATIOS(1, None, None, n_heads=4, output="head-sum"), 2),
])
def test_closed_laws_by_both_routes(spec, order):
    for route in ("transform", "pencil"):
        law = fa.law(spec, route=route)
        assert law.edge_exponents[0][0] == Fraction(1, order) - 1
        assert slope(law) == pytest.approx(1 / order - 1, abs=2e-3)  # corrections are of relative size x^{1/k}
    assert slope(fa.law(spec, route="pencil")) == pytest.approx(slope(fa.law(spec, route="transform")), abs=1e-9)


@pytest.mark.parametrize(("model", "order"), [
    (A, 2), (A @ B, 3), (A @ B @ D, 4), (A @ A, 3), (A + fa.identity(R), Fraction(3, 2)),
])
def test_products_of_square_matrices(model, order):
    law = fa.law(model)
    assert law.edge_exponents[0][0] == 1 / Fraction(order) - 1
    assert slope(law) == pytest.approx(float(1 / Fraction(order)) - 1, abs=2e-3)


def test_gaussian_tokens():
    law = fa.law(RATIOS(1, 1, 1, n_heads=1, tokens_per_width=1, inputs="gaussian"))
    assert slope(law) == pytest.approx(float(law.edge_exponents[0][0]), abs=4e-3)
    assert law.edge_exponents[0][0] == Fraction(-4, 5)
