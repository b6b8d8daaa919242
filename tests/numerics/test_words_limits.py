"""Laws of words where something vanishes, coincides, or cannot be resolved: right numbers or clear errors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.errors import BranchError, InputError, NotCoveredError
from freeattn.numerics.dyson_tables import tables_of
from freeattn.numerics.trace_equation import TraceEquation
from freeattn.theory.dyson import dyson_of

R, C = fa.space("r", 2), fa.space("c", 1)
S, Y, X = fa.wigner("S", R, Fraction(1, 2)), fa.gaussian("Y", R, R, Fraction(1, 2)), fa.gaussian("X", R, C)
SIGNS = fa.diagonal("D", R, [-1, 1])
SIZES = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64}
COSINE = fa.Entrywise(lambda x, functions: functions.cos(x), name="cos")


def test_even_scores_have_no_signal():
    """θ₂ = 0: the words with queries and keys are left out; both routes agree, and inputs make their difference."""
    plain = fa.law(fa.Attention(**SIZES, scores=COSINE), route="pencil")
    assert plain.edges == pytest.approx(np.array(fa.law(fa.Attention(**SIZES, scores=COSINE)).edges), rel=1e-12)
    for fields in ({"inputs": "gaussian"}, {"tie": "output-key"}, {"latent": fa.Latent(40)},
                   {"inputs": "gaussian", "tie": "key-value"}):
        law = fa.law(fa.Attention(**SIZES, scores=COSINE, **fields))
        assert law.mean == pytest.approx(plain.mean, rel=1e-13)


def test_a_word_of_weight_zero_is_left_out():
    weight = sp.Symbol("w", positive=True)
    model = Y + weight * Y @ fa.gaussian("Z", R, R)
    assert fa.law(model, sizes={"w": 0}).edges == fa.law(Y).edges
    with pytest.raises(InputError, match="not zero"):
        fa.law(weight * Y, sizes={"w": 0})


@pytest.mark.parametrize(("model", "of", "atoms"), [
    (fa.concatenate(fa.identity(R), fa.identity(R)), "gram", [(2, 1)]),
    (fa.concatenate(X @ X.T + fa.identity(R), fa.identity(R)), "gram", [(2, Fraction(1, 2))]),
    (fa.diagonal("E", R, [sp.sqrt(2), 1]), "self-adjoint", [(1, Fraction(1, 2)), (math.sqrt(2), Fraction(1, 2))]),
    (fa.identity(R) * 3, "gram", [(9, 1)]),
])
def test_atoms_of_constant_parts(model, of, atoms):
    law = fa.law(model, of=of)
    assert [atom.weight for atom in law.atoms] == [weight for _, weight in atoms]
    assert [atom.location for atom in law.atoms] == pytest.approx([location for location, _ in atoms], rel=1e-15)
    assert sum(law.band_masses) + sum(float(weight) for _, weight in atoms) == pytest.approx(1, abs=1e-12)


def test_copies_of_one_matrix_side_by_side():
    law = fa.law(fa.copies("h", 3).concatenate(X))
    known = fa.law(X)
    assert np.array(law.edges) == pytest.approx(3 * np.array(known.edges), rel=1e-12)


def test_a_cusp_gives_no_wrong_number():
    law = fa.law(S + SIGNS, of="self-adjoint")
    for x in (0.0, 1e-15):
        with pytest.raises(BranchError, match="singular"):
            law.density(x)
        with pytest.raises(BranchError, match="singular"):
            law.stieltjes(x + 1e-15j)
    assert law.stieltjes(1e-6j) == pytest.approx(1j * 1e-2, rel=1e-3)


def test_edges_of_two_branches_that_coincide():
    """The law of M Mᵀ of an even M: each edge is one of λ and of −λ."""
    gram, own = fa.law(S + 3 * SIGNS), fa.law(S + 3 * SIGNS, of="self-adjoint")
    assert gram.edges[0] == pytest.approx([x**2 for x in own.edges[1]], rel=1e-12)


def test_an_edge_that_is_no_square_root_is_refused_at_once():
    with pytest.raises(NotCoveredError, match="no square-root edge"):
        fa.law(fa.identity(R) - Y @ Y.T, of="self-adjoint")


def test_small_noise_about_two_points():
    law = fa.law(SIGNS + S / 1000, of="self-adjoint")
    assert law.band_masses == pytest.approx((0.5, 0.5), abs=1e-12)


def test_far_and_at_edges():
    law = fa.law(Y)
    assert law.stieltjes(4.0) == pytest.approx(-0.5, rel=1e-7)
    assert law.stieltjes(1e300) == -1e-300
    z = np.array([2e6, 1e9 + 1e9j, -5e7])
    assert np.max(np.abs(law.stieltjes(z) * (-z + 1 + 1 / z) - 1)) < 1e-12
    near = np.array([3.9e6, 4.1e6]) + 1j
    assert np.max(np.abs(law.stieltjes(near) * (-near + 1 + 1 / near) - 1)) < 1e-12
    with pytest.raises(InputError, match="complex"):
        law.stieltjes("a")


def test_many_digits_of_a_law_without_bands():
    law = fa.law(fa.identity(R) * 3)
    assert law.cdf(1, digits=30) == 0
    assert law.cdf(9, digits=30) == 1
    assert abs(law.stieltjes(1, digits=30) - Fraction(1, 8)) < 1e-30


def test_an_atom_inside_a_band():
    part = fa.diagonal("P", R, [1, 0])
    law = fa.law(part @ S @ part - part, of="self-adjoint")
    with pytest.raises(InputError, match="atom"):
        law.density(0.0)
    assert law.density(1e-6) > 0


@pytest.mark.parametrize("sizes", [{"p": -1}, {"p": 0}, {"p": None}, {"p": "3"}, [3], "p=3", {"q": 1}, {"p": 3, R: 4}])
def test_sizes_that_are_refused(sizes):
    p = sp.Symbol("p", positive=True)
    with pytest.raises(InputError, match="sizes"):
        fa.law(fa.gaussian("Y", R, fa.space("c", p), 1 / p), sizes=sizes)


def test_two_numbers_for_one_symbol_and_exact_floats():
    p = sp.Symbol("p", positive=True)
    model = fa.gaussian("Y", R, fa.space("c", p), 1 / p)
    with pytest.raises(InputError, match="one number for p"):
        fa.law(model, sizes={"p": 3, p: 4})
    v = sp.Symbol("v", positive=True)
    law = fa.law(fa.gaussian("Y", R, R, v), sizes={v: 0.1})
    assert law.moments(1, digits=40)[0] == 2 * Fraction(0.1)


def test_infinitely_many_heads_are_not_derived():
    spec = fa.Attention.from_ratios(1, 1, 1, n_heads=math.inf, inputs="gaussian")
    with pytest.raises(NotCoveredError, match="infinitely many heads"):
        fa.derive(spec)


# Derivatives -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def equation():
    model = S @ Y + fa.diagonal("D", R, [1, 2]) @ Y @ Y.T
    return TraceEquation(tables_of(dyson_of(model)))


def test_jacobian_and_slope_are_the_derivatives(equation):
    rng = np.random.default_rng(0)
    u, z = 0.3 * rng.standard_normal((2, equation.count)) + 0.2j, np.array([1 + 1j, -2 + 0.5j])
    matrices, step = equation.matrices(u, z), 1e-6
    jacobian = equation.jacobian(matrices)
    for e in range(equation.count):
        shift = np.zeros(equation.count)
        shift[e] = step
        up, down = (equation.evaluate(u + sign * shift, z).phi for sign in (1, -1))
        column = -(up - down) / (2 * step)
        column[:, e] += 1
        assert np.max(np.abs(jacobian[:, :, e] - column)) < 1e-6 * (1 + np.max(np.abs(column)))
    up, down = (equation.evaluate(u, z + sign * step).phi for sign in (1, -1))
    slope = equation.slope(matrices)
    assert np.max(np.abs(slope - (up - down) / (2 * step))) < 1e-6 * (1 + np.max(np.abs(slope)))


def test_the_bordered_system_has_its_derivatives(equation):
    rng = np.random.default_rng(1)
    count = equation.count
    u, phi, gauge, x, step = (*rng.standard_normal((3, count)) * 0.3, 5.0, 1e-6)
    point = np.concatenate([u, [x], phi])
    _, matrix = equation.bordered(u, x, phi, gauge)
    for k in range(2 * count + 1):
        ends = []
        for sign in (1, -1):
            moved = point.copy()
            moved[k] += sign * step
            ends.append(equation.bordered(moved[:count], moved[count], moved[count + 1 :], gauge)[0])
        column = (ends[0] - ends[1]) / (2 * step)
        assert np.max(np.abs(matrix[:, k] - column)) < 1e-5 * (1 + np.max(np.abs(column)))


def test_the_cone_refuses_the_conjugate_and_other_roots():
    equation = TraceEquation(tables_of(dyson_of(Y)))
    z = np.array([2.0 + 0.5j])
    law = fa.law(Y)
    m = law.stieltjes(z)
    right = None
    for start in np.random.default_rng(3).standard_normal((400, equation.count, 2)):
        u, good = equation.newton((start[:, 0] + 1j * start[:, 1])[None], z)
        if good[0]:
            found = equation.output(equation.matrices(u, z))
            same = abs(found[0] / m[0] - 1) < 1e-10
            assert equation.in_cone(u, z)[0] == same
            right = u if same else right
    assert right is not None
    assert not equation.in_cone(np.conj(right), z)[0]
