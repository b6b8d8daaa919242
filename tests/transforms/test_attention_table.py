"""The table of closed laws: means, moments, the transforms of ρ and μ_KV, and their curves."""

from __future__ import annotations

import math
import random
from typing import Any

import mpmath
import pytest
import sympy as sp

import freeattn as fa
from freeattn.errors import NotCoveredError
from freeattn.theory import symbols as sym
from freeattn.theory.attention_laws import law_of
from freeattn.theory.equivalent import equivalent_of
from freeattn.theory.symbols import Q, S, W
from freeattn.theory.system import system_of
from freeattn.theory.transforms import (
    CompoundFreePoisson,
    FreePoisson,
    FreeProduct,
    Image,
    Law,
    MarchenkoPastur,
)

R = sp.Rational
ROWS = [
    ("attention", "none"),
    ("values", "none"),
    ("mha", "none"),
    ("head-sum", "none"),
    ("values", "key-value"),
    ("mha", "key-value"),
]
FREE_ROWS = [row for row in ROWS if row[1] == "none"]
C = sym.THETA_2 / sym.THETA_1


def spec_of(output: str, tie: str, **changes: Any) -> fa.Attention:
    gamma_value = R(2, 3) if tie == "key-value" else R(5, 4)
    return fa.Attention.from_ratios(
        R(2, 3), gamma_value, R(3, 2), n_heads=6, output=output, tie=tie, **changes
    )


def law_in_symbols(output: str, tie: str) -> Law:
    return law_of(spec_of(output, tie)).law


MEANS = {
    ("attention", "none"): sym.THETA_1,
    ("values", "none"): sym.GAMMA_VALUE * sym.THETA_1,
    ("mha", "none"): sym.GAMMA_OUT * sym.THETA_1,
    ("head-sum", "none"): sym.THETA_1,
    ("values", "key-value"): sym.GAMMA_KEY * sym.THETA_1 + sym.HEADS * sym.THETA_2,
    ("mha", "key-value"): sym.GAMMA_OUT * (sym.THETA_1 + sym.HEADS * sym.THETA_2 / sym.GAMMA_KEY),
}


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_means(row: tuple[str, str]) -> None:
    assert sp.cancel(law_in_symbols(*row).mean - MEANS[row]) == 0


@pytest.mark.parametrize("row", FREE_ROWS, ids="-".join)
def test_second_and_third_moment(row: tuple[str, str]) -> None:
    """m₂ = 1 + Σ + c²g and the m₃ that goes with it; factors that are absent have their letter at 0."""
    a, b, o, g = 1 / sym.HEADS, sp.Integer(0), sp.Integer(0), 1 / sym.GAMMA_KEY
    if row[0] == "values":
        b = 1 / sym.GAMMA_VALUE
    if row[0] == "mha":
        b, o = 1 / sym.GAMMA_VALUE, 1 / sym.GAMMA_OUT
    if row[0] == "head-sum":
        a, g = sp.Integer(1), 1 / sym.GAMMA_KV
    second = 1 + a + b + o + C**2 * g
    third = (
        1
        + 3 * (a + b + o + C**2 * g)
        + a**2
        + b**2
        + o**2
        + 3 * (a * b + a * o + b * o)
        + 3 * C**2 * g * (a + b + o)
        + C**3 * g**2
    )
    first, m2, m3 = law_in_symbols(*row).moments(3)
    assert sp.cancel(m2 / first**2 - second) == 0
    assert sp.cancel(m3 / first**3 - third) == 0


ATOMS = {
    ("attention", "none"): sp.Integer(1),
    ("values", "none"): sp.Min(1, sym.GAMMA_VALUE),
    ("mha", "none"): sp.Min(1, sym.GAMMA_VALUE, sym.GAMMA_OUT),
    ("head-sum", "none"): sp.Integer(1),
    ("values", "key-value"): sp.Min(1, sym.GAMMA_KEY),
    ("mha", "key-value"): sp.Min(1, sym.GAMMA_KEY, sym.GAMMA_OUT),
}


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_mass_off_zero(row: tuple[str, str]) -> None:
    rng = random.Random(1)
    found, expected = law_in_symbols(*row).mass_off_zero, ATOMS[row]
    for _ in range(20):
        values = {
            s: R(rng.randint(1, 40), 20)
            for s in (sym.GAMMA_KEY, sym.GAMMA_VALUE, sym.GAMMA_OUT, sym.GAMMA_KV)
        }
        values |= {sym.HEADS: rng.randint(1, 30), sym.THETA_1: 2, sym.THETA_2: 1}
        assert sp.sympify(found).subs(values) == sp.sympify(expected).subs(values)


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_curve_against_the_s_relation(row: tuple[str, str]) -> None:
    """S(ψ(q)) = (1 + ψ)χ/ψ along the curve, exactly, at random rational parameters."""
    rng = random.Random(2)
    law = law_in_symbols(*row)
    curve = law.uniformization()
    for _ in range(3):
        values = {
            symbol: R(rng.randint(1, 30), rng.randint(1, 10))
            for symbol in sorted((curve.psi.free_symbols | curve.chi.free_symbols) - {Q}, key=str)
        }
        values[sym.THETA_1], values[sym.THETA_2] = sp.Integer(3), R(rng.randint(1, 29), 10)
        relation = law.substitute(values).s_relation()
        for _ in range(3):
            at = {**values, Q: R(rng.randint(-30, 30) or 1, 1009)}  # no pole has this denominator
            psi, chi = curve.psi.subs(at), curve.chi.subs(at)
            assert relation.subs({S: (1 + psi) * chi / psi, W: psi}) == 0


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_changing_a_factor_changes_the_equation(row: tuple[str, str]) -> None:
    at = {
        sym.GAMMA_KEY: R(2, 3),
        sym.GAMMA_KV: R(2, 3),
        sym.GAMMA_VALUE: R(5, 4),
        sym.GAMMA_OUT: R(3, 2),
        sym.HEADS: 6,
        sym.THETA_1: 2,
        sym.THETA_2: 1,
    }
    law = law_in_symbols(*row).substitute(at)
    more = FreeProduct((law, MarchenkoPastur(R(1, 7))))
    x, y = (sp.cancel(1 / node.uniformization().chi) for node in (law, more))
    psi = law.uniformization().psi
    assert sp.cancel(y / x - (1 + psi / 7)) == 0
    assert system_of(more).equations != system_of(law).equations


# ρ ------------------------------------------------------------------------------------------------


def rho(gamma: Any, c: Any) -> Law:
    """ρ_γ with θ₁ = 1, θ₂ = c."""
    return Image(MarchenkoPastur(1 / sp.sympify(gamma)), (1 - c, c))


def closed_s_rho(z: Any, c: Any, gamma: Any) -> Any:
    g = c / gamma
    return 2 / (1 + g * z + mpmath.sqrt((1 - g * z) ** 2 + 4 * c * g * z))


@pytest.mark.parametrize("seed", range(8))
def test_s_rho_closed_form(seed: int) -> None:
    rng = random.Random(seed)
    gamma, c = R(rng.randint(1, 60), rng.randint(1, 20)), R(rng.randint(1, 20), 20)
    law = rho(gamma, c)
    explicit = law.s_explicit(W)
    assert explicit is not None
    for w in (R(rng.randint(1, 99), 100), R(-rng.randint(1, 9), 100), R(rng.randint(1, 50))):
        with mpmath.workdps(40):
            expected = closed_s_rho(
                mpmath.mpf(w.p) / w.q, mpmath.mpf(c.p) / c.q, mpmath.mpf(gamma.p) / gamma.q
            )
            found = mpmath.mpmathify(sp.N(explicit.subs(W, w), 40))
            assert abs(found / expected - 1) < mpmath.mpf(10) ** -35


def test_r_rho() -> None:
    gamma, c, z = sp.symbols("gamma c z", positive=True)
    expected = 1 - c + c / (1 - c * z / gamma)
    assert sp.cancel(rho(gamma, c).r_transform(z) - expected) == 0


def test_scaling_of_s_rho() -> None:
    """S_{ρ_{γ/h}}(w/h) = S_{ρ_γ}(w): both relations have the same zero set."""
    gamma, c, h = R(3, 7), R(4, 9), sp.Integer(5)
    relation = sp.Poly(rho(gamma, c).s_relation(), S, W)
    scaled = sp.Poly(sp.together(rho(gamma / h, c).s_relation().subs(W, W / h)).as_numer_denom()[0], S, W)
    assert sp.expand(relation.monic().as_expr() - scaled.monic().as_expr()) == 0


def test_rho_at_its_limits() -> None:
    gamma = R(3, 7)
    assert rho(gamma, 1).moments(6) == MarchenkoPastur(1 / gamma).moments(6)
    assert rho(gamma, 0).moments(6) == (1,) * 6


# K = V --------------------------------------------------------------------------------------------


def free_poisson_stieltjes(x: Any, t: Any) -> Any:
    """∫ π_t(ds)/(s − x): x m² + (x + 1 − t) m + 1 = 0 with the branch m ~ −1/x."""
    left, right = (1 - mpmath.sqrt(t)) ** 2, (1 + mpmath.sqrt(t)) ** 2
    return (t - 1 - x + mpmath.sqrt(x - left) * mpmath.sqrt(x - right)) / (2 * x)


def psi_of_tied_values(z: Any, t: Any, a1: Any, a2: Any) -> Any:
    root = mpmath.sqrt(a1 * a1 + 4 * a2 / z)
    x1, x2 = (-a1 + root) / (2 * a2), (-a1 - root) / (2 * a2)
    difference = free_poisson_stieltjes(x1, t) - free_poisson_stieltjes(x2, t)
    return -1 - difference / (z * a2 * (x1 - x2))


@pytest.mark.parametrize("seed", range(6))
def test_s_relation_of_tied_values_against_the_integral_formula(seed: int) -> None:
    rng = random.Random(seed)
    t, a1, a2 = (R(rng.randint(1, 40), rng.randint(1, 20)) for _ in range(3))
    law = Image(FreePoisson(t), (0, a1, a2))
    relation = sp.Poly(law.s_relation(), S, W)
    with mpmath.workdps(40):
        numbers = [mpmath.mpf(v.p) / v.q for v in (t, a1, a2)]
        points = [
            -mpmath.mpf(rng.uniform(0.01, 5)),
            mpmath.mpc(rng.uniform(-3, 3), rng.uniform(0.1, 2)),
            mpmath.mpc(rng.uniform(-1, 1), -rng.uniform(0.1, 2)),
        ]
        for z in points:
            psi = psi_of_tied_values(z, *numbers)
            s = (1 + psi) * z / psi
            terms = [mpmath.mpf(c.p) / c.q * s**i * psi**k for (i, k), c in relation.terms()]
            assert abs(sum(terms)) < mpmath.mpf(10) ** -33 * sum(abs(term) for term in terms)


def test_the_integral_formula_itself() -> None:
    """ψ(z) = ∫ zφ/(1 − zφ) dπ_t by quadrature, so that the formula above is a reference and not a belief."""
    t, a1, a2, z = mpmath.mpf(3), mpmath.mpf("0.4"), mpmath.mpf("0.7"), mpmath.mpc("-0.8", "0.3")
    left, right = (1 - mpmath.sqrt(t)) ** 2, (1 + mpmath.sqrt(t)) ** 2

    def integrand(angle: Any) -> Any:
        x = left + (right - left) * mpmath.sin(angle) ** 2
        weight = (right - left) ** 2 * mpmath.sin(2 * angle) ** 2 / (4 * mpmath.pi * x)
        phi = a1 * x + a2 * x * x
        return z * phi / (1 - z * phi) * weight

    direct = mpmath.quad(integrand, [0, mpmath.pi / 4, mpmath.pi / 2])
    assert abs(direct - psi_of_tied_values(z, t, a1, a2)) < 1e-13


def test_tied_values_are_a_compound_free_poisson_law() -> None:
    law = law_of(spec_of("values", "key-value")).law
    assert isinstance(law, CompoundFreePoisson)
    per_head = law.law
    for cumulant, moment in zip(law.free_cumulants(4), per_head.moments(4), strict=True):
        assert sp.cancel(cumulant - sym.HEADS * moment) == 0


def test_tied_values_without_scores_are_untied() -> None:
    """θ₂ = 0: keys enter as values only, so both rows agree."""
    at = {
        sym.THETA_2: 0,
        sym.THETA_1: 2,
        sym.GAMMA_KEY: R(2, 3),
        sym.GAMMA_VALUE: R(2, 3),
        sym.GAMMA_OUT: R(3, 2),
        sym.HEADS: 6,
    }
    for output in ("values", "mha"):
        tied, free = (law_in_symbols(output, tie).substitute(at) for tie in ("key-value", "none"))
        assert tied.moments(6) == free.moments(6)


# Specifications -----------------------------------------------------------------------------------


def test_values_of_the_symbols() -> None:
    spec = fa.Attention(n_tokens=512, d_model=768, n_heads=12, d_key=64, d_value=64)
    expression = law_of(spec)
    assert dict(expression.values) == {
        sym.GAMMA_KEY: R(3, 2),
        sym.GAMMA_VALUE: R(3, 2),
        sym.GAMMA_OUT: R(3, 2),
        sym.HEADS: 12,
    }
    assert expression.value_of(sym.THETA_1) == sym.THETA_1


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_sharing_across_heads_enters_only_the_head_sum(row: tuple[str, str], groups: int) -> None:
    grouped, plain = law_of(spec_of(*row, n_kv_heads=groups)), law_of(spec_of(*row))
    if row[0] == "head-sum":
        assert dict(grouped.values) == {sym.GAMMA_KV: R(2, 3) * groups / 6}
    else:
        assert (grouped.law, grouped.values) == (plain.law, plain.values)


def test_scales_dilate() -> None:
    base = spec_of("mha", "none")
    scaled = law_of(base.replace(value_scale=3, output_scale=R(1, 2)))
    at = {**dict(scaled.values), sym.THETA_1: 2, sym.THETA_2: 1}
    plain = law_of(base).law.substitute(at).moments(3)
    assert scaled.law.substitute(at).moments(3) == tuple(m * R(9, 4) ** k for k, m in enumerate(plain, 1))


def test_infinitely_many_heads() -> None:
    spec = fa.Attention.from_ratios(2, 3, 4, n_heads=math.inf)
    assert sym.HEADS not in dict(law_of(spec).values)
    at = {**dict(law_of(spec).values), sym.THETA_1: 2, sym.THETA_2: 1}
    many = law_of(spec.replace(n_heads=10**9))
    limit = law_of(spec).law.substitute(at).moments(3)
    finite = many.law.substitute({**at, **dict(many.values)}).moments(3)
    assert all(abs(a / b - 1) < R(1, 10**8) for a, b in zip(finite, limit, strict=True))
    for output in ("mha", "values"):
        with pytest.raises(NotCoveredError, match="n_heads = inf"):
            law_of(fa.Attention.from_ratios(2, 2, 4, n_heads=math.inf, tie="key-value", output=output))


def test_theta_of_softmax() -> None:
    beta = sp.Symbol("beta", positive=True)
    equivalent = equivalent_of(spec_of("mha", "none", beta=beta))
    assert (equivalent.theta_1, equivalent.theta_2) == (sp.exp(beta**2) - 1, beta**2)
    theta_1, theta_2 = equivalent_of(spec_of("mha", "none", beta=R(1, 3))).numeric(40)
    with mpmath.workdps(50):
        assert abs(theta_1 / mpmath.expm1(mpmath.mpf(1) / 9) - 1) < mpmath.mpf(10) ** -39
        assert abs(theta_2 * 9 - 1) < mpmath.mpf(10) ** -39
