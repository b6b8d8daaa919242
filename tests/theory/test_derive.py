"""The derivation: equations by rule, values, moments, and agreement with the numbers."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory import symbols as sym
from freeattn.theory.attention_laws import law_of
from freeattn.theory.derivation import Derivation
from freeattn.theory.derive import derive, symbolic_spec
from freeattn.theory.forms import primitive, ring_of
from freeattn.theory.mean_one import scalar_equation
from freeattn.theory.transforms import (
    Dilation,
    Discrete,
    FreePoisson,
    FreeProduct,
    FreeSum,
    Image,
    Law,
    MarchenkoPastur,
    Semicircle,
)

K, V, O, H = sym.GAMMA_KEY, sym.GAMMA_VALUE, sym.GAMMA_OUT, sym.HEADS  # noqa: E741
PI_REST = sym.PI_REST
T1, T2, C, W, Z, M, LAM, PI = sym.THETA_1, sym.THETA_2, sym.C, sym.W, sym.Z, sym.M, sym.LAMBDA, sym.PI_FACTOR
HALF = sp.Rational(1, 2)
ROWS = [
    ("mha", "none"), ("values", "none"), ("attention", "none"), ("head-sum", "none"),
    ("mha", "key-value"), ("values", "key-value"),
]
MEANS = [O * T1, V * T1, T1, T1, O * (T1 + H * T2 / K), K * T1 + H * T2]
PRODUCTS = {
    "mha": (1 + Z) * (1 + Z / H) * (1 + Z / V) * (1 + Z / O),
    "values": (1 + Z) * (1 + Z / H) * (1 + Z / V),
    "attention": (1 + Z) * (1 + Z / H),
    "head-sum": (1 + Z) ** 2,
}


def same(left: sp.Expr, right: sp.Expr) -> bool:
    """Equal as rational functions."""
    return sp.cancel(sp.together(left - right)) == 0


def numeric_spec(output: str, tie: str, **changes: object) -> fa.Attention:
    fields: dict[str, object] = {
        "n_tokens": 240, "d_model": 300, "n_heads": 4, "d_key": 90, "beta": Fraction(4, 5),
        "output": output, "tie": tie,
    }
    if output in ("mha", "values") and tie == "none":
        fields["d_value"] = 50
    if output == "mha":
        fields["d_out"] = 190
    return fa.Attention(**{**fields, **changes})  # type: ignore[arg-type]


def relative_residual(polynomial: sp.Expr, values: dict[sp.Symbol, complex]) -> float:
    """|P| at a point over the sum of the sizes of its terms."""
    symbols = sorted(polynomial.free_symbols, key=str)
    total, size = 0j, 0.0
    for powers, coefficient in sp.Poly(polynomial, *symbols).terms():
        term = complex(float(coefficient))
        for symbol, power in zip(symbols, powers, strict=True):
            term *= complex(values[symbol]) ** power
        total, size = total + term, size + abs(term)
    return abs(total) / size


# Symbolic equations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", PRODUCTS)
def test_compact_equation(output: str) -> None:
    """λ²w − λ(1 − cw/γ_K)Π(−w) − (c(1−c)/γ_K)Π(−w)² = 0, as an identity of expressions."""
    scalar = derive(symbolic_spec(output)).scalar
    gamma = sym.GAMMA_KV if output == "head-sum" else K
    assert scalar is not None
    assert sp.expand(scalar.compact - (LAM**2 * W - LAM * (1 - C * W / gamma) * PI - C * (1 - C) / gamma * PI**2)) == 0
    assert same(scalar.product, PRODUCTS[output])
    assert not scalar.compact.has(T1, T2)


@pytest.mark.parametrize(("output", "tie"), ROWS)
def test_equation_is_that_of_the_dilated_law(output: str, tie: str) -> None:
    """The relation of the law divided by its mean, at λwS(−w) = 1 − w, is the same polynomial."""
    d = derive(numeric_spec(output, tie))
    numbers = {**d.numbers, T1: sp.Integer(3), T2: 3 * sp.Rational(2, 7)}
    relation = d.mean_one.substitute({C: sp.Rational(2, 7), **numbers}).s_relation()
    at_w = relation.subs(W, -W).subs(sym.S, (1 - W) / (LAM * W))
    expected = sp.fraction(sp.together(at_w))[0]
    scalar = d.specialized()
    assert scalar is not None
    found = scalar.polynomial().subs(C, sp.Rational(2, 7))
    assert found != 0
    quotient = sp.cancel(expected / found)
    assert set(sp.fraction(quotient)[1].free_symbols) == set()  # found divides the relation
    assert quotient.subs(W, HALF) != 0


def test_equation_with_tied_keys_and_values() -> None:
    """Coefficients with t = γ_K/h: the relation of μ_KV is quadratic in S."""
    scalar = derive(symbolic_spec("values", "key-value")).scalar
    assert scalar is not None
    assert same(scalar.product, (1 + Z) * (1 + Z / H))
    assert [(i, j) for i, j, _ in scalar.terms] == [(2, 0), (1, 1), (0, 2)]
    (base,) = scalar.base
    assert base.scale == H
    assert base.law.mean == 1 or same(base.law.mean, sp.Integer(1))


def test_dropping_a_factor_changes_the_equation() -> None:
    """Without MP_{1/h}, Π loses 1 + z/h and the polynomial changes with it."""
    full = law_of(symbolic_spec())
    assert isinstance(full.law, FreeProduct)
    without = FreeProduct(tuple(f for f in full.law.factors if f != MarchenkoPastur(1 / H)))
    assert len(without.factors) == 3
    scalar, changed = scalar_equation(full.law), derive(without).scalar
    assert changed is not None
    assert same(changed.product * (1 + Z / H), scalar.product)
    assert changed.polynomial() != scalar.polynomial()
    assert H not in changed.polynomial().free_symbols
    limit = sp.Poly(scalar.polynomial(), H)
    assert sp.expand(limit.LC() - changed.polynomial()) in (0, -2 * changed.polynomial())  # h → ∞


def test_replacing_a_factor_changes_the_equation() -> None:
    """π_1 in place of π_{γ_O}: γ_O is 1 in Π and in the polynomial."""
    law = law_of(symbolic_spec()).law
    assert isinstance(law, FreeProduct)
    changed = derive(FreeProduct((*law.factors[:-1], FreePoisson(1)))).scalar
    assert changed is not None
    assert same(changed.product, PRODUCTS["mha"].subs(O, 1))
    expected = scalar_equation(law).polynomial().subs(O, 1)
    ring = ring_of([expected], (LAM, W))
    assert sp.expand(primitive(ring.from_expr(expected)).as_expr() - changed.polynomial()) == 0


def test_changing_the_base_changes_the_equation() -> None:
    law = FreeProduct((Image(MarchenkoPastur(1 / K), (T1, T2)), FreePoisson(V)))  # mean θ₁ + θ₂, not θ₁
    scalar = derive(law).scalar
    assert scalar is not None
    (base,) = scalar.base
    assert isinstance(base.law, Image)
    assert all(same(a, b) for a, b in zip(base.law.coefficients, (1 / (1 + C), C / (1 + C)), strict=True))


@pytest.mark.parametrize(("row", "mean"), list(zip(ROWS, MEANS, strict=True)))
def test_means(row: tuple[str, str], mean: sp.Expr) -> None:
    d = derive(symbolic_spec(*row))
    assert same(d.mean, mean)
    assert same(d.moments(1)[0], mean)
    assert d.normalized_moments(1) == (1,)


def test_moments_of_independent_values() -> None:
    a, b, o, g, x = 1 / H, 1 / V, 1 / O, 1 / K, C**2 / K
    first, second, third = derive(symbolic_spec()).normalized_moments(3)
    assert first == 1
    assert sp.expand(second - (1 + a + b + o + x)) == 0
    assert sp.expand(third - (
        1 + 3 * (a + b + o + x) + a**2 + b**2 + o**2 + 3 * (a * b + a * o + b * o) + 3 * x * (a + b + o) + C**3 * g**2
    )) == 0


def test_definitions_and_symbols() -> None:
    d = derive(symbolic_spec())
    size = lambda name: sp.Symbol(name, positive=True, integer=True)  # noqa: E731
    assert same(d.value_of(K), size("n_heads") * size("d_key") / size("n_tokens"))
    assert same(d.value_of(T1), sp.exp(sym.BETA**2) - 1)
    assert same(d.value_of(C), sym.BETA**2 / (sp.exp(sym.BETA**2) - 1))
    assert d.numbers == {}
    assert d.polynomial().free_symbols == {K, V, O, H, C, Z, M}
    assert d.polynomial(normalized=False).free_symbols == {K, V, O, H, C, T1, Z, M}
    assert d.equations == d.system.equations
    assert d.unknowns == d.system.unknowns
    assert [step.name for step in d.steps] == [
        "layer", "equivalent", "law", "transforms", "mean-one", "scalar", "stieltjes", "branch", "curve", "atoms",
        "moments",
    ]
    assert any("n_tokens ≤ d_model" in a.statement for a in d.assumptions)
    assert all(rule.source for rule in d.rules)


# Numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("output", "tie"), ROWS)
def test_polynomial_vanishes_on_the_law(output: str, tie: str) -> None:
    spec = numeric_spec(output, tie)
    d, law = derive(spec), fa.law(spec)
    one = law.normalized()
    c, theta = (float(d.approximate(symbol)) for symbol in (C, T1))
    for z in (0.4 + 0.7j, 2.1 + 0.05j, -0.8, 1.0 + 0.0j):
        m = one.stieltjes(z)
        assert relative_residual(d.polynomial(), {Z: z, M: m, C: c}) < 1e-12
        own = {Z: z * law.mean, M: m / law.mean, C: c, T1: theta}
        assert relative_residual(d.polynomial(normalized=False), own) < 1e-12
        scalar = d.specialized()
        assert scalar is not None
        w = 1 + z * m
        rest = complex(scalar.rest.subs(Z, -w))
        compact = scalar.stieltjes_compact.subs({Z: z, M: m, W: w, C: c, PI_REST: rest})
        assert abs(complex(compact)) < 1e-11
        wrong = {Z: z, M: m * 1.01, C: c}
        assert relative_residual(d.polynomial(), wrong) > 1e-6


@pytest.mark.parametrize(("output", "tie"), ROWS)
def test_specialized_is_the_general_equation_with_values(output: str, tie: str) -> None:
    d = derive(numeric_spec(output, tie))
    general = d.polynomial(general=True).subs(d.numbers)
    special = d.polynomial()
    ring = ring_of([sp.expand(general)], (Z, M))
    assert sp.expand(primitive(ring.from_expr(sp.expand(general))).as_expr() - special) == 0


def test_values_of_a_preset() -> None:
    d = fa.derive(fa.architecture("bert-base", n_tokens=512))
    assert isinstance(d, Derivation)
    assert d.value_of(K) == sp.Rational(3, 2)
    assert d.value_of(H) == 12
    assert d.value_of(T1) == sp.E - 1
    assert d.value_of(T2) == 1
    assert same(d.value_of(C), 1 / (sp.E - 1))
    assert d.polynomial().free_symbols == {C, Z, M}
    assert d.polynomial(general=True).free_symbols > {K, H}
    assert d.mean == O * T1
    assert same(d.moments(1)[0], sp.Rational(3, 2) * T1)
    assert d.atom_at_zero.subs(d.numbers) == 0
    assert d.branch.upper == sp.Min(1, H, V, O)


def test_sharing_across_heads_changes_nothing() -> None:
    specs = [fa.architecture("falcon-7b", n_tokens=2048), fa.architecture("falcon-7b", n_tokens=2048)]
    specs[1] = specs[0].replace(n_kv_heads=specs[0].n_heads)
    assert specs[0].n_kv_heads == 1
    grouped, full = (derive(spec) for spec in specs)
    assert grouped.system == full.system
    assert grouped.polynomial() == full.polynomial()
    assert grouped.scalar == full.scalar


def test_sharing_enters_the_head_sum() -> None:
    d = derive(numeric_spec("head-sum", "none", n_kv_heads=2))
    assert d.numbers == {sym.GAMMA_KV: sp.Rational(3, 4)}


def test_linear_scores() -> None:
    """c = 1: the square root drops out, λw = (1 − w/γ_K)Π(−w)."""
    scalar = derive(numeric_spec("values", "none", scores="linear")).specialized()
    assert scalar is not None
    assert scalar.terms[0] == (1, 0, W)
    assert [(i, j) for i, j, _ in scalar.terms] == [(1, 0), (0, 1)]
    assert same(scalar.compact, LAM * W - (1 - 2 * W / 3) * PI)


def test_scores_without_closed_form() -> None:
    d = derive(numeric_spec("values", "none", scores="sigmoid"))
    assert d.value_of(T1) == T1
    c = d.approximate(C)
    assert c is not None
    assert 0.99 < float(c) < 1
    law = fa.law(d.source).normalized()
    m = law.stieltjes(1 + 0.3j)
    assert relative_residual(d.polynomial(), {Z: 1 + 0.3j, M: m, C: float(c)}) < 1e-12
    assert derive(symbolic_spec("values", scores="sigmoid")).approximate(C) is None


def test_infinitely_many_heads() -> None:
    spec = fa.Attention.from_ratios(HALF, 3, 2, n_heads=float("inf"))
    d = derive(spec)
    scalar = d.specialized(general=True)
    assert scalar is not None
    assert same(scalar.product, (1 + Z) * (1 + Z / V) * (1 + Z / O))
    assert d.numbers == {K: HALF, V: 3, O: 2}


def test_scales_are_a_dilation() -> None:
    plain, scaled = (derive(numeric_spec("mha", "none", value_scale=s)) for s in (1, 3))
    assert plain.polynomial() == scaled.polynomial()
    assert same(scaled.moments(2)[1], 81 * plain.moments(2)[1])


# Laws of one's own -----------------------------------------------------------------------------------------------


def test_product_of_marchenko_pastur_laws() -> None:
    law = FreeProduct((MarchenkoPastur(HALF), MarchenkoPastur(sp.Rational(4, 5))))
    d = derive(law)
    assert d.scalar is not None
    assert same(d.scalar.compact, LAM * W - PI)
    assert same(d.scalar.product, (1 + Z) * (1 + Z / 2) * (1 + 4 * Z / 5))
    m = fa.law(law).stieltjes(0.7 + 0.2j)
    assert relative_residual(d.polynomial(normalized=False), {Z: 0.7 + 0.2j, M: m}) < 1e-12
    assert d.equivalent is None
    assert d.values == ()


@pytest.mark.parametrize("law", [
    MarchenkoPastur(sp.Integer(3)),
    FreePoisson(sp.Rational(2, 3)),
    Dilation(FreePoisson(sp.Integer(4)), sp.Rational(1, 3)),
    FreeProduct((MarchenkoPastur(HALF), Discrete((sp.Integer(0), sp.Integer(2)), (HALF, HALF)))),
    FreeSum((MarchenkoPastur(HALF), Semicircle(sp.Rational(1, 3)))),
    FreeProduct((FreeSum((FreePoisson(HALF), FreePoisson(sp.Integer(2)))), MarchenkoPastur(HALF))),
    FreeSum((Discrete((-1, 1), (HALF, HALF)), Semicircle(sp.Integer(1)))),  # type: ignore[arg-type]
])
def test_polynomial_of_other_laws(law: Law) -> None:
    d = derive(law)
    polynomial = d.polynomial(normalized=False)
    assert polynomial.free_symbols == {Z, M}
    for z in (0.3 + 0.4j, 2 + 0.1j, -1 + 1j):
        m = fa.law(law).stieltjes(z)
        terms = [complex(term.subs({Z: z, M: m})) for term in sp.Add.make_args(polynomial)]
        assert abs(sum(terms)) < 1e-11 * max(abs(term) for term in terms)
    assert d.text()


def test_irrational_parameters() -> None:
    law = Dilation(FreePoisson(sp.sqrt(2)), sp.Integer(5))
    assert residual_at_infinity(derive(law).polynomial(normalized=False), law) < 1e-14


def residual_at_infinity(polynomial: sp.Expr, law: Law) -> float:
    """Relative residual of P(z, m) at z = 4000 with m from twelve moments."""
    z = sp.Integer(4000)
    m = -sum(moment / z ** (k + 1) for k, moment in enumerate((sp.Integer(1), *law.moments(12))))
    terms = [sp.N(term.subs({Z: z, M: m}), 40) for term in sp.Add.make_args(polynomial)]
    return float(abs(sum(terms)) / max(abs(term) for term in terms))


def test_law_without_mean() -> None:
    d = derive(FreeSum((Discrete((-1, 1), (HALF, HALF)), Semicircle(sp.Symbol("v", positive=True)))))  # type: ignore[arg-type]
    assert d.scalar is None
    assert d.branch.upper is None
    with pytest.raises(fa.NotCoveredError, match="mean 0"):
        d.polynomial()
    with pytest.raises(fa.NotCoveredError, match="normalized=False"):
        d.normalized_moments(2)


def test_law_without_rational_curve() -> None:
    """Two bases at once: no rational parameter, but equations all the same."""
    t = sp.Symbol("t", positive=True)
    first, second = Image(MarchenkoPastur(HALF), (1, 2)), Image(MarchenkoPastur(t), (1, 1))  # type: ignore[arg-type]
    law = FreeProduct((first, second, MarchenkoPastur(t)))
    d = derive(law)
    assert d.system.parametrization is None
    assert d.unknowns == (W,)
    assert len(d.scalar.terms) == 5  # type: ignore[union-attr]
    polynomial = d.polynomial(normalized=False).subs(t, HALF)
    assert residual_at_infinity(polynomial, law.substitute({t: HALF})) < 1e-14


def test_law_that_only_the_algebra_knows() -> None:
    cubic = Image(MarchenkoPastur(HALF), (0, 1, 0, 1))  # type: ignore[arg-type]
    with pytest.raises(fa.NotCoveredError):
        derive(cubic)
    with pytest.raises(fa.InputError, match="source"):
        derive("bert-base")  # type: ignore[arg-type]


# Forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("output", "tie"), ROWS)
def test_record(output: str, tie: str) -> None:
    d = derive(numeric_spec(output, tie))
    record = json.loads(json.dumps(d.to_dict()))
    assert {"assumptions", "rules", "values", "steps", "system", "moments", "mean", "atoms"} <= set(record)
    scalar = d.specialized()
    assert scalar is not None
    assert sp.sympify(record["polynomial"]["scalar"]["srepr"]) == scalar.compact
    assert sp.sympify(record["polynomial"]["expanded"]) == d.polynomial()
    assert tuple(sp.sympify(e["srepr"]) for e in record["system"]["equations"]) == d.equations
    assert record["values"]["c"]["number"] == pytest.approx(float(d.approximate(C)))
    for step in record["steps"]:
        for equation in step["equations"]:
            assert equation["latex"]
            assert equation["text"]


def test_record_of_a_score_function_by_quadrature() -> None:
    values = derive(numeric_spec("values", "none", scores="sigmoid")).to_dict()["values"]
    assert values["theta_1"]["text"] == "θ₁"
    assert 0 < values["theta_1"]["number"] < 1


def test_text() -> None:
    text = derive(symbolic_spec()).text()
    assert "λ²·w − λ·(1 − c·w/γ_K)·Π(−w) − c·(1 − c)/γ_K·Π(−w)² = 0" in text
    assert "Π(z) = (1 + z)(1 + z/h)(1 + z/γ_V)(1 + z/γ_O)" in text
    assert "ν = ρ_{γ_K} ⊠ MP_{1/h} ⊠ MP_{1/γ_V} ⊠ π_{γ_O}" in text
    assert "m₂ = 1 + 1/h + 1/γ_V + 1/γ_O + c²/γ_K" in text
    assert max(len(line) for line in text.splitlines()) <= 110
    numbers = derive(fa.architecture("bert-base", n_tokens=512)).text()
    assert "θ₁ = e − 1 ≈ 1.71828182845905" in numbers
    assert "λ²·w − λ·(1 − 2·c·w/3)·Π(−w) − 2·c·(1 − c)/3·Π(−w)² = 0" in numbers
