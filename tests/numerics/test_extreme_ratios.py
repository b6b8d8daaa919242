"""Closed laws at large β and at very unequal ratios, against the polynomial equation and the pencil route."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_poly

import freeattn as fa
from freeattn.errors import BranchError, ConvergenceError
from freeattn.model.precision import own_context
from freeattn.numerics.exact import exact_law
from freeattn.numerics.polynomials import Start, real_roots, refined
from freeattn.numerics.precise import Place, PreciseCurve
from freeattn.numerics.rational import RationalEngine
from freeattn.numerics.wide import Wide, WidePolynomial
from freeattn.theory.transforms import Discrete, FreePoisson, FreeSum

BALANCED = {"gamma_key": 1, "gamma_value": 2, "gamma_out": Fraction(1, 2), "n_heads": 2}
UNEQUAL = {"gamma_key": 1, "gamma_value": 10**4, "gamma_out": Fraction(1, 10**4), "n_heads": 256}
SPREAD = {
    "gamma_key": 10**4, "gamma_value": Fraction(999999999, 10**9), "gamma_out": 10**4, "n_heads": 10**6,
}


def _residual(ratios: dict[str, Fraction | int], beta: int, x: np.ndarray, m: np.ndarray) -> np.ndarray:
    """λ²w = λ(1 − cw/γ_K)Π + c(1 − c)/γ_K·Π², Π = (1 − w)(1 − w/h)(1 − w/γ_V)(1 − w/γ_O), λ = −x, w = 1 − λm; share
    of the largest term."""
    c, key = float(beta**2 / np.expm1(float(beta) ** 2)), float(ratios["gamma_key"])
    w, product = 1 + x * m, -x * m
    for name in ("n_heads", "gamma_value", "gamma_out"):
        product = product * (1 - w / float(ratios[name]))
    terms = [x * x * w, x * (1 - c * w / key) * product, -c * (1 - c) / key * product**2]
    return np.abs(sum(terms)) / np.max(np.abs(terms), axis=0)


@pytest.mark.parametrize(("ratios", "beta"), [(BALANCED, 5), (BALANCED, 26), (UNEQUAL, 20), (SPREAD, 20)])
def test_the_law_solves_its_equation_and_has_its_mass(ratios: dict[str, Fraction | int], beta: int) -> None:
    law = fa.law(fa.Attention.from_ratios(**ratios, beta=beta)).normalized()
    atom = float(law.atoms[0].weight)
    x = law.quantile(atom + (1 - atom) * np.linspace(0.02, 0.98, 25))
    m = law.stieltjes(x.astype(complex))
    assert np.all(m.imag > 0)
    assert np.max(_residual(ratios, beta, x, m)) < 1e-9
    assert abs(law.integrate(lambda t: t) - 1) < 1e-10


@pytest.mark.parametrize(("ratios", "beta"), [(BALANCED, 26), (UNEQUAL, 20)])
def test_both_routes_agree_at_large_inverse_temperature(ratios: dict[str, Fraction | int], beta: int) -> None:
    spec = fa.Attention.from_ratios(**ratios, beta=beta)
    closed, pencil = (fa.law(spec, route=route).normalized() for route in ("transform", "pencil"))
    np.testing.assert_allclose(closed.edges, pencil.edges, rtol=1e-10)
    x = closed.quantile(1 - float(1 - closed.atoms[0].weight) * np.array([0.9, 0.5, 0.1]))
    np.testing.assert_allclose(closed.density(x), pencil.density(x), rtol=1e-9)


def test_roots_hundreds_of_bits_apart_are_isolated_by_signs() -> None:
    near = fmpq(2) ** -300
    roots = [-fmpq(2) ** 700, fmpq(-3), fmpq(2) ** -400, fmpq(1), 1 + near, fmpq(5, 3) * 10**200, fmpq(2) ** 901]
    polynomial = fmpq_poly([1, 1, 1])
    for root in roots:
        polynomial *= fmpq_poly([-root, 1])
    context = own_context(200)
    found = real_roots(polynomial, 150)
    assert len(found) == len(roots)
    for value, root in zip(found, roots, strict=True):
        assert abs(context.mpf(int(root.p)) / int(root.q) - value) <= context.mpf(10) ** -149 * abs(value)
    large, small = fmpq(2) ** 400, fmpq(2) ** -400
    assert real_roots(fmpq_poly([large**2, -large, 1]) * fmpq_poly([small**2, -small, 1]), 20) == []


def test_a_step_beyond_doubles_is_an_error_of_the_package() -> None:
    start = Start(Wide(1, 0, -2000), -2100)
    with pytest.raises(ConvergenceError, match="residual inf"):
        refined(WidePolynomial(fmpq_poly([1, 0, 1])), start, 20)


@pytest.mark.parametrize(("z", "shown"), [
    (1 + 2j, r"\(1.0 \+ 2.0j\)"), (1 - 2j, r"\(1.0 - 2.0j\)"), (-3.0, "-3.0 moved"),
])
def test_errors_of_many_digits_name_the_point_asked_for(z: complex, shown: str) -> None:
    engine = RationalEngine(exact_law(fa.Attention.from_ratios(**BALANCED)).curve)
    known = engine._bands, engine._gaps
    astray = PreciseCurve(engine._curve, known, lambda: known, 30, lambda _: Place(fmpq(0), 0.3 + 0.2j))
    with pytest.raises((BranchError, ConvergenceError), match=shown):
        astray.stieltjes(z)


def test_a_band_far_from_the_parameter_at_zero() -> None:
    """The sum of a two-point law and a free Poisson law: m solves m = Σ w/(a − x + ½/(1 + m)) at x + i0."""
    law = fa.law(FreeSum((Discrete((0, 5), (Fraction(1, 10), Fraction(9, 10))), FreePoisson(Fraction(1, 2)))))
    assert len(law.edges) == 2
    x = np.concatenate([np.linspace(left, right, 30)[1:-1] for left, right in law.edges])
    m = law.stieltjes(x.astype(complex))
    moved = 0.5 / (1 + m) - x
    np.testing.assert_allclose(0.1 / moved + 0.9 / (5 + moved), m, rtol=1e-11)
    np.testing.assert_allclose(law.moments(1)[0], 5.0, rtol=1e-15)
    np.testing.assert_allclose(law.stieltjes(6.0 + 0j), complex(law.stieltjes(6, digits=30)), rtol=1e-12)
