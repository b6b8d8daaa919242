"""Algebraic curves: known ones, degrees, both routes, verification, branch points and edges."""

from __future__ import annotations

import json
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.errors import ConvergenceError, InputError, NotCoveredError
from freeattn.theory import minimal_polynomial as module_of_curves
from freeattn.theory import real_roots
from freeattn.theory.algebraic_curve import AlgebraicCurve
from freeattn.theory.attention_words import words_of
from freeattn.theory.dyson import dyson_of
from freeattn.theory.expansion import expansion_of
from freeattn.theory.minimal_polynomial import annihilates
from freeattn.theory.modular_series import ModularSeries
from freeattn.theory.symbols import THETA_1, THETA_2, C, M, Z
from freeattn.theory.transforms import FreePoisson, FreeProduct, FreeSum, MarchenkoPastur, Semicircle
from freeattn.theory.weights import as_fmpq

N = fa.space("N", 1)
A, B, D = (fa.gaussian(name, N, N, 1) for name in "ABD")
WIGNER = fa.wigner("S", N, 1)
HALF = Fraction(1, 2)
PRIME = 2**61 - 1
SMALL = {"n_tokens": 4, "d_model": 6, "n_heads": 2, "d_key": 3}
LAYERS = {
    "attention": {**SMALL, "output": "attention"},
    "head sum": {**SMALL, "output": "head-sum"},
    "values": {**SMALL, "d_value": 2, "output": "values"},
    "mha": {**SMALL, "d_value": 2, "d_out": 5},
    "key-value": {**SMALL, "d_out": 5, "tie": "key-value"},
}
GAUSSIAN = {**LAYERS["mha"], "inputs": "gaussian"}
GAUSSIAN_TIED = {**LAYERS["key-value"], "inputs": "gaussian"}


def degrees(curve: AlgebraicCurve) -> tuple[int, int]:
    return curve.degree_z, curve.degree_m


def law_itself(expression, of="gram") -> AlgebraicCurve:
    return fa.derive(expression, of=of).curve(normalized=False)


@pytest.mark.parametrize(
    ("expression", "of", "known"),
    [
        (A, "gram", Z * M**2 + Z * M + 1),
        (WIGNER, "self-adjoint", M**2 + Z * M + 1),
        (A @ B, "gram", Z**2 * M**3 - Z * M - 1),
        (A @ B @ D, "gram", Z**3 * M**4 + Z * M + 1),
        (fa.identity(N), "gram", Z * M - M + 1),
    ],
    ids=["Marchenko-Pastur", "semicircle", "two factors", "three factors", "point mass"],
)
def test_known_curves(expression, of, known):
    curve = law_itself(expression, of)
    assert sp.expand(curve.expression - known) == 0
    assert curve.irreducible


def test_marchenko_pastur_of_any_ratio_by_both_routes():
    rows, columns = fa.space("p", 3), fa.space("q", 7)
    by_words = law_itself(fa.gaussian("X", rows, columns, Fraction(1, 7)))
    by_transforms = fa.derive(MarchenkoPastur(sp.Rational(3, 7))).curve(normalized=False)
    assert by_words == by_transforms
    assert sp.expand(by_words.expression - (3 * Z * M**2 + (7 * Z - 4) * M + 7)) == 0


def test_free_sum_of_semicircles_and_free_poisson():
    curve = fa.derive(FreeSum((Semicircle(1), FreePoisson(HALF)))).curve(normalized=False)
    rows = fa.space("rows", 2)
    letter = fa.gaussian("X", rows, fa.space("columns", 1), HALF)
    both = fa.wigner("S", rows, HALF) + letter @ letter.T
    assert curve == law_itself(both, "self-adjoint")


@pytest.mark.parametrize("name", LAYERS)
def test_both_routes_give_one_curve(name):
    spec = fa.Attention(**LAYERS[name])
    first, second = fa.derive(spec), fa.derive(spec, route="pencil")
    for values in ({"c": Fraction(1, 3)}, {THETA_1: 5, THETA_2: 2}):
        assert first.curve(values=values) == second.curve(values=values)
    assert first.curve(False, {"theta_1": 5, "theta_2": 2}) == second.curve(False, {"theta_1": 5, "theta_2": 2})
    assert first.polynomial(values={C: HALF}) == second.polynomial(values={C: HALF})


@pytest.mark.parametrize(
    ("fields", "c", "expected"),
    [(GAUSSIAN, HALF, (16, 20)), (GAUSSIAN, 1, (8, 9)), (GAUSSIAN_TIED, 1, (13, 15)), (GAUSSIAN_TIED, HALF, (19, 26)),
     ({**GAUSSIAN_TIED, "n_heads": 1}, HALF, (19, 26)), ({**GAUSSIAN, "n_kv_heads": 1}, HALF, (16, 20))],
    ids=["gaussian", "gaussian, no noise", "key-value, no noise", "key-value", "key-value, one head", "shared keys"],
)
def test_degrees_of_layers(fields, c, expected):
    curve = fa.derive(fa.Attention(**fields)).curve(values={"c": c})
    assert degrees(curve) == expected
    assert curve.irreducible


def test_degrees_of_words():
    assert degrees(law_itself(A @ A.T @ A)) == (6, 8)
    assert degrees(law_itself(A @ A.T @ A @ A.T)) == (14, 16)


@pytest.mark.slow
def test_a_curve_of_degree_42():
    curve = fa.derive(fa.Attention(**{**GAUSSIAN, "d_value": 3}, latent=fa.Latent(5))).curve(values={"c": HALF})
    assert degrees(curve) == (33, 42)


@pytest.mark.slow
def test_a_curve_out_of_reach():
    tied = {**SMALL, "tie": "key-value-output", "inputs": "gaussian"}
    with pytest.raises(NotCoveredError, match="degree above 64 in z, or one that is too wide"):
        fa.derive(fa.Attention(**tied)).curve(values={"c": HALF})


def test_square_roots_that_meet_in_pairs():
    """Roots of the eigenvalues of a covariance, and of a coefficient, are not in the moments."""
    covariance = fa.FeatureCovariance((1, 2), (1, 1))
    spec = fa.Attention(**SMALL, output="attention", inputs=covariance, scores="linear")
    curve, law = fa.derive(spec).curve(), fa.law(spec).normalized()
    assert curve.residual(1 + 0.3j, law.stieltjes(1 + 0.3j)) < 1e-13
    assert curve.residual(1 + 0.3j, law.stieltjes(1.01 + 0.3j)) > 1e-6
    root, z = sp.sqrt(2) * A + A @ B, 3 + 2j
    assert law_itself(root).residual(z, fa.law(root).stieltjes(z)) < 1e-13


# Verification ------------------------------------------------------------------------------------------------------


def series_of(expression, numbers) -> ModularSeries:
    expansion = expansion_of(dyson_of(expression))
    return ModularSeries(expansion, [as_fmpq(sp.sympify(w).subs(numbers)) for w in expansion.weights])


def test_one_wrong_coefficient_is_rejected():
    derivation = fa.derive(fa.Attention(**GAUSSIAN))
    numbers = {**derivation.numbers, THETA_1: 2, THETA_2: 1}
    curve = derivation.curve(False, {"theta_1": 2, "theta_2": 1})
    series, right = series_of(derivation.expression, numbers), {(i, j): c for i, j, c in curve.terms}
    assert annihilates(series, right, 400, PRIME)
    for powers in sorted(right)[::5]:
        assert not annihilates(series, {**right, powers: right[powers] + 1}, 400, PRIME)


@pytest.mark.parametrize("fields", [GAUSSIAN, GAUSSIAN_TIED], ids=["independent", "key-value"])
def test_the_law_of_the_numbers_lies_on_the_curve(fields):
    """m(z) to 60 digits, from the Dyson equation, at points off and on the axis; edges are branch points."""
    words = words_of(fa.Attention(**fields))
    numbers = {**dict(words.values), THETA_1: 2, THETA_2: 1}
    law = fa.law(words.expression, sizes=numbers)
    curve = fa.derive(words.expression).curve(False, numbers)
    assert curve == fa.derive(fa.Attention(**fields)).curve(False, {THETA_1: 2, THETA_2: 1})
    with mpmath.workdps(70):
        for z in (mpmath.mpc("1.37", "0.21"), mpmath.mpf("3.1"), mpmath.mpf("-0.7")):
            m = law.stieltjes(z, digits=60)
            assert curve.residual(z, m) < 1e-56
            assert curve.residual(z, m * (1 + mpmath.mpf("1e-20"))) > 1e-40
    known = law.edges_to(30)
    for pair, given in zip(curve.edges(known), known, strict=True):
        for point, edge in zip(pair, given, strict=True):
            assert abs(point.value(30) - edge) <= abs(edge) * 1e-28


# Branch points -----------------------------------------------------------------------------------------------------


def test_branch_points_are_algebraic_numbers():
    curve = fa.derive(MarchenkoPastur(2)).curve(normalized=False)
    root = sp.sqrt(2)
    left, right = curve.branch_points
    for point, exact in ((left, (1 - root) ** 2), (right, (1 + root) ** 2)):
        assert point.polynomial == (1, -6, 1)
        assert point.lower < sp.N(exact, 50) < point.upper
        inside = point.enclosed(60)
        assert 0 < inside.upper - inside.lower <= abs(inside.lower) / 10**60
        assert inside.lower < sp.N(exact, 80) < inside.upper
        assert abs(sp.Float(str(point.value(50)), 50) - sp.N(exact, 50)) < 1e-48
    assert curve.discriminant == (((1, -6, 1), 1),)


def test_edges_of_a_closed_law():
    spec = fa.Attention(**{**LAYERS["mha"], "d_value": 3}, scores="linear")  # θ₂ = θ₁: c = 1 is rational
    curve, law = fa.derive(spec).curve(), fa.law(spec).normalized()
    (pair,) = curve.edges(law.edges_to(30))
    assert all(point.multiplicity == 1 for point in pair)
    with pytest.raises(InputError, match="branch points of this curve"):
        curve.edges([(law.edges[0][0], 1.0)])


def test_hard_edge_is_a_branch_point():
    curve = law_itself(A @ B)
    (pair,) = curve.edges(fa.law(A @ B).edges_to(30))
    assert [point.value(20) for point in pair] == [0, mpmath.mpf("6.75")]


# Values and forms --------------------------------------------------------------------------------------------------


def test_dilation_and_normalization():
    derivation = fa.derive(fa.Attention(**GAUSSIAN))
    mean = derivation.moments(1)[0].subs({THETA_1: 3, THETA_2: 2})
    own = derivation.curve(False, {"theta_1": 3, "theta_2": 2})
    assert own.dilated(1 / mean) == derivation.curve(values={"c": Fraction(2, 3)})
    assert own.dilated(7).dilated(Fraction(1, 7)) == own


def test_evaluation_and_factors():
    curve = AlgebraicCurve.from_expression((Z * M + 1) * (Z * M**2 + Z * M + 1) * Z**2)
    assert degrees(curve) == (2, 3)
    assert not curve.irreducible
    assert {factor.expression for factor, _ in curve.factors} == {Z * M + 1, Z * M**2 + Z * M + 1}
    assert curve.evaluate(Fraction(2), Fraction(-1, 2)) == 0
    assert curve.residual(2.0, 1.0) > 0.1


def test_reducible_polynomials_give_the_factor_of_the_law():
    """⊠ of two projections of weight 1/2: the equation of the S-transforms, and only what the law obeys."""
    law = FreeProduct((MarchenkoPastur(1), MarchenkoPastur(1)))
    assert sp.expand(fa.derive(law).curve().expression - (Z**2 * M**3 - Z * M - 1)) == 0


def test_record_and_latex():
    curve = law_itself(A @ B)
    record = json.loads(json.dumps(curve.to_dict()))
    assert record["terms"] == [[2, 3, "1"], [1, 1, "-1"], [0, 0, "-1"]]
    assert record["degree_m"] == 3
    assert [point["lower"] for point in record["branch_points"]] == ["0", "27/4"]
    assert curve.latex() == r"\left(z^{2}\right) m^{3} + \left(- z\right) m - 1 = 0"


def test_what_is_refused():
    layer = fa.derive(fa.Attention(**GAUSSIAN))
    with pytest.raises(InputError, match=r"theta_1, theta_2, or for c"):
        layer.curve()
    with pytest.raises(InputError, match=r"theta_1, theta_2, such as values="):
        layer.curve(normalized=False)
    with pytest.raises(InputError, match="one of"):
        layer.curve(values={"gamma": 1})
    with pytest.raises(InputError, match="rational"):
        layer.curve(values={"c": sp.sqrt(2)})
    with pytest.raises(NotCoveredError, match="pencil route"):
        layer.polynomial(general=True)
    with pytest.raises(NotCoveredError, match="mean"):
        fa.derive(WIGNER, of="self-adjoint").curve()
    with pytest.raises(InputError, match="rational coefficients"):
        law_itself(sp.pi * A + A @ B)
    with pytest.raises(InputError, match="rational number for each of c"):
        fa.derive(fa.Attention(**LAYERS["mha"])).curve()


def test_symbols_of_an_expression_take_values():
    p, q = sp.symbols("p q", positive=True)
    word = fa.gaussian("X", fa.space("rows", p), fa.space("columns", q), 1 / q)
    curve = fa.derive(word).curve(values={"p": 3, "q": 7})
    assert curve == fa.derive(MarchenkoPastur(sp.Rational(3, 7))).curve()
    with pytest.raises(InputError, match="q"):
        fa.derive(word).curve(values={"p": 3})


# Bad arguments -----------------------------------------------------------------------------------------------------


def refused(field, call, *arguments):
    with pytest.raises(InputError) as caught:
        call(*arguments)
    assert caught.value.field == field, arguments


@pytest.mark.parametrize("route", ["transform", "pencil"])
@pytest.mark.parametrize("values", [[("c", 1)], [], "c", "", 0, {"c": 1}.items()])
def test_values_are_a_mapping(route, values):
    derivation = fa.derive(fa.Attention(**LAYERS["mha"]), route=route)
    for call in (derivation.curve, derivation.polynomial):
        with pytest.raises(InputError, match=r"values = .* a mapping"):
            call(values=values)


@pytest.mark.parametrize("route", ["transform", "pencil"])
@pytest.mark.parametrize(
    "value", ["1/0", "one", None, True, [1], 1j, float("nan"), float("inf"), np.float64("-inf"), mpmath.inf, sp.nan]
)
def test_values_are_rational_numbers(route, value):
    derivation = fa.derive(fa.Attention(**LAYERS["mha"]), route=route)
    for call in (derivation.curve, derivation.polynomial):
        with pytest.raises(InputError, match=r"values\[c\] = .* rational"):
            call(values={"c": value})


def test_floats_are_their_exact_binary_value():
    derivation = fa.derive(fa.Attention(**LAYERS["mha"]))
    for value in (0.1, np.float64(0.1), sp.Float(0.1)):
        assert derivation.curve(values={"c": value}) == derivation.curve(values={"c": Fraction(0.1)})


def test_points_that_are_no_finite_numbers():
    curve = law_itself(A @ B)
    for call in (curve.evaluate, curve.residual):
        for bad in ("a", None, True, [1], float("nan"), complex(1, float("inf")), mpmath.nan, sp.nan, sp.oo,
                    np.array([1, np.nan]), np.array(["a"])):
            refused("z", call, bad, 1)
            refused("m", call, 1, bad)
        refused("z, m", call, 1e200, 1e200)
    assert curve.evaluate(Z, M) == curve.expression
    assert curve.evaluate(np.array([2, 3]), 1).tolist() == [1, 5]


def test_residual_where_all_terms_vanish():
    curve = AlgebraicCurve.from_expression(Z + M)
    assert curve.residual(0, 0) == 0
    assert curve.residual(np.zeros(2), np.array([0.0, 1.0])).tolist() == [0, 1]


@pytest.mark.parametrize("factor", ["x", "1/0", None, True, float("nan"), float("inf"), sp.sqrt(2), 0, -1, [1], 1j])
def test_dilation_by_what_is_no_positive_rational(factor):
    refused("factor", law_itself(A @ B).dilated, factor)


@pytest.mark.parametrize("edges", [
    None, 5, [1], [(1,)], [(1, 2, 3)], "ab", ["ab"], [("a", "b")], [(None, 1)], [(0, float("nan"))], [(0, Z)],
    [(0, [1])], [(0, np.array([1, 2]))],
])
def test_edges_that_are_no_pairs_of_numbers(edges):
    refused("edges", law_itself(A @ B).edges, edges)


@pytest.mark.parametrize("digits", [2.5, "3", None, 0, -1, True, [2], float("nan")])
def test_digits_of_a_branch_point(digits):
    point = fa.derive(MarchenkoPastur(2)).curve(normalized=False).branch_points[-1]
    for call in (point.value, point.enclosed):
        refused("digits", call, digits)
    assert point.value(np.int64(5)) == point.value(5)


# Solvers that break off --------------------------------------------------------------------------------------------


def broken_off(call, what, tolerance=None):
    """No residual is claimed where none was measured."""
    with pytest.raises(ConvergenceError, match=what) as caught:
        call()
    assert (caught.value.residual, caught.value.tolerance) == (None, tolerance)
    assert "residual" not in str(caught.value)


def test_errors_of_exact_algebra_have_no_made_up_numbers(monkeypatch):
    series = series_of(A @ B, {})
    monkeypatch.setattr(module_of_curves, "annihilates", lambda *_: False)
    broken_off(lambda: module_of_curves.minimal_polynomial(series), "verification")
    monkeypatch.setattr(module_of_curves, "_MOST_PRIMES", 1)
    broken_off(lambda: module_of_curves.minimal_polynomial(series), "coefficients of the algebraic curve")
    point = fa.derive(MarchenkoPastur(2)).curve(normalized=False).branch_points[-1]
    monkeypatch.setattr(real_roots, "_DOUBLINGS", 0)
    broken_off(lambda: point.enclosed(300), "branch point", 10.0**-300)
