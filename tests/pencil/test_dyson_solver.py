"""Numbers of the Dyson equation against closed forms, the transform calculus, copies written out, and exact moments."""

from __future__ import annotations

from fractions import Fraction

import models
import numpy as np
import pytest
from copied import double_sum, even_chain, families, gram, latent, written_out

import freeattn as fa
from freeattn.errors import InputError
from freeattn.model.expression import gaussian, wigner
from freeattn.model.letters import copies, space
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import moments

N, P = space("n", 20), space("p", 30)
SIZES = {"n_tokens": 400, "d_model": 800, "n_heads": 12, "d_key": 40, "d_value": 50, "d_out": 500}
POINTS = np.linspace(0.01, 4, 20) + 1j * np.geomspace(1e-3, 1, 20)


def values(theta_1, theta_2):
    return {models.n: 400, models.d: 800, models.d_key: 40, models.d_value: 50, models.d_out: 500, models.h: 12,
            models.theta_1: theta_1, models.theta_2: theta_2}


def difference(found, known):
    return float(np.max(np.abs(found / known - 1)))


def test_marchenko_pastur():
    found = DysonSolver(dyson_of(gaussian("X", N, P, Fraction(1, 30)))).stieltjes(POINTS)
    y, z = 2 / 3, POINTS
    root = np.sqrt(z - (1 - np.sqrt(y)) ** 2) * np.sqrt(z - (1 + np.sqrt(y)) ** 2)
    assert difference(found, (1 - y - z + root) / (2 * y * z)) < 1e-11


@pytest.mark.parametrize("tie", ["none", "key-value"])
@pytest.mark.parametrize("beta", [Fraction(1, 2), 1, Fraction(3, 2)])
def test_both_routes_give_one_law_for_orthogonal_input(tie, beta):
    tied = tie == "key-value"
    sizes = {**SIZES, "d_value": 40} if tied else SIZES
    spec = fa.Attention(**sizes, beta=beta, tie=tie)
    theta_2 = beta**2
    theta_1 = fa.derive(spec).equivalent.theta_1
    solver = DysonSolver(dyson_of(models.orthogonal(tied)), values(theta_1, theta_2))
    assert difference(solver.stieltjes(POINTS), fa.law(spec).stieltjes(POINTS)) < 1e-10


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("model", [gram, double_sum, even_chain, latent])
def test_copies_and_the_sum_written_out_have_one_law(model, count):
    expression = model(families(count))
    scale = float(moments(dyson_of(expression), 1)[0])
    points = scale * POINTS
    short = DysonSolver(dyson_of(expression)).stieltjes(points)
    assert difference(short, DysonSolver(dyson_of(written_out(expression))).stieltjes(points)) < 1e-10


def test_a_million_heads_are_as_easy_as_one():
    """Gaussian input at h → ∞ with fixed total widths: the law converges like 1/h."""
    def at(count):
        heads = copies("heads", count)
        total = 10**8
        sizes = {models.n: 4 * total, models.d: 8 * total, models.d_out: 5 * total, models.theta_2: 1,
                 models.theta_1: Fraction(17, 10),
                 models.d_key: Fraction(4 * total, count), models.d_value: Fraction(6 * total, count)}
        return DysonSolver(dyson_of(models.gaussian_input(heads)), sizes).stieltjes(POINTS)

    last = at(10**8)
    gaps = [difference(at(count), last) for count in (10**2, 10**4, 10**6)]
    assert gaps[0] > 30 * gaps[1] > 30 * 30 * gaps[2]
    assert gaps[2] < 1e-5


def test_very_many_heads_have_the_law_of_infinitely_many():
    ratios = {"gamma_key": Fraction(1, 2), "gamma_value": Fraction(3, 4), "gamma_out": 2}
    spec = fa.Attention.from_ratios(**ratios, n_heads=float("inf"), beta=1)
    tokens, count = 10**6, 10**15
    sizes = {models.n: tokens, models.h: count, models.theta_1: fa.derive(spec).equivalent.theta_1, models.theta_2: 1,
             models.d_key: Fraction(tokens, 2 * count), models.d_value: Fraction(3 * tokens, 4 * count),
             models.d_out: 2 * tokens}
    found = DysonSolver(dyson_of(models.orthogonal()), sizes).stieltjes(POINTS)
    assert difference(found, fa.law(spec).stieltjes(POINTS)) < 1e-10


def test_close_to_the_real_axis_in_and_outside_the_bulk():
    system = dyson_of(models.gaussian_input())
    z = np.array([-1, 1e-6, 0.1, 1, 2, 5, 50]) + 1e-9j
    solution = DysonSolver(system, values(Fraction(17, 10), 1)).solve(z)
    assert np.max(solution.residual) < 1e-13
    assert np.all(solution.stieltjes.imag > 0)
    assert solution.stieltjes[3].imag > 0.1  # inside
    assert solution.stieltjes[-1].imag < 1e-9  # far outside


@pytest.mark.parametrize("length", [1, 2, 4])
def test_far_away_the_series_of_exact_moments_holds(length):
    s = wigner("S", N, Fraction(1, 20))
    system = dyson_of(s**length + gaussian("X", N, N, Fraction(1, 20)))
    exact = [1, *map(float, moments(system, 8))]
    z = 6j * exact[8] ** (1 / 8)
    series = -sum(m / z ** (k + 1) for k, m in enumerate(exact))
    assert abs(DysonSolver(system).stieltjes(z) / series - 1) < 20 * abs(exact[8] / z**8) + 1e-13


def test_symmetric_letters_are_semicirculars():
    """M = S: M² has the law of a free Poisson of rate 1 in scale, m(z) = (−1 + √(1 − 4/z))/2."""
    found = DysonSolver(dyson_of(wigner("S", N, Fraction(1, 20)))).stieltjes(POINTS)
    assert difference(found, (-1 + np.sqrt(POINTS - 4) / np.sqrt(POINTS)) / 2) < 1e-11


def test_shape_of_the_answer_is_that_of_the_points():
    solver = DysonSolver(dyson_of(gaussian("X", N, P)))
    assert solver.stieltjes(1 + 1j).shape == ()
    assert solver.stieltjes(np.full((2, 3), 1j)).shape == (2, 3)
    solution = solver.solve(POINTS)
    assert solution.traces.shape == (20, 2)
    assert np.max(solution.residual) < 1e-13


@pytest.mark.parametrize("z", [1.0, 1 - 1j, np.nan, [1j, 0]])
def test_points_outside_the_upper_half_plane_are_refused(z):
    with pytest.raises(InputError, match="positive imaginary part"):
        DysonSolver(dyson_of(gaussian("X", N, P))).stieltjes(z)


def test_a_symbol_without_a_value_is_named():
    with pytest.raises(InputError, match="still symbolic: theta_2"):
        DysonSolver(dyson_of(models.orthogonal()), {models.n: 4, models.h: 2})
