"""Every node of the algebra: moments, free cumulants, transforms, curve and atoms tell one story, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from rational_series import compose, expand, fraction, moment_from_cumulants, multiply, s_series

from freeattn.errors import InputError
from freeattn.theory.symbols import Q, S, W
from freeattn.theory.transforms import (
    CompoundFreePoisson,
    Dilation,
    Discrete,
    FreePoisson,
    FreeProduct,
    FreeSum,
    Image,
    Law,
    MarchenkoPastur,
    PointMass,
    Semicircle,
)

R = sp.Rational
ORDER = 5

COIN = Discrete((-1, 1), (R(1, 2), R(1, 2)))
TWO = Discrete((1, 5), (R(1, 3), R(2, 3)))
LAWS: dict[str, Law] = {
    "point mass": PointMass(R(3, 2)),
    "projection": Discrete((0, 1), (R(2, 3), R(1, 3))),
    "dilated projection": Discrete((0, 4), (R(1, 4), R(3, 4))),
    "two points": TWO,
    "three points": Discrete((0, 1, 10), (R(1, 4), R(1, 4), R(1, 2))),
    "signed points": Discrete((-1, 3), (R(1, 3), R(2, 3))),
    "Marchenko-Pastur 1/3": MarchenkoPastur(R(1, 3)),
    "Marchenko-Pastur 5/2": MarchenkoPastur(R(5, 2)),
    "free Poisson 2/5": FreePoisson(R(2, 5)),
    "free Poisson 3": FreePoisson(3),
    "dilation": Dilation(FreePoisson(R(2, 5)), 3),
    "affine image": Image(MarchenkoPastur(R(5, 2)), (R(1, 3), R(2, 3))),
    "quadratic image": Image(FreePoisson(R(2, 5)), (0, R(1, 3), R(3, 4))),
    "square": Image(FreePoisson(R(7, 2)), (0, 0, 1)),
    "quadratic image of MP": Image(MarchenkoPastur(R(5, 2)), (0, R(1, 3), R(3, 4))),
    "quadratic image of points": Image(TWO, (1, R(1, 3), R(3, 4))),
    "compound, points": CompoundFreePoisson(TWO, R(3, 2)),
    "compound, projection": CompoundFreePoisson(Discrete((0, 1), (R(2, 3), R(1, 3))), R(3, 2)),
    "compound, image": CompoundFreePoisson(Image(FreePoisson(R(2, 5)), (0, R(1, 3), R(3, 4))), 5),
    "compound twice": CompoundFreePoisson(CompoundFreePoisson(TWO, 2), R(1, 3)),
    "product of two": FreeProduct((MarchenkoPastur(R(1, 3)), FreePoisson(R(7, 2)))),
    "product with points": FreeProduct((TWO, MarchenkoPastur(R(5, 2)))),
    "product with image": FreeProduct((Image(MarchenkoPastur(R(5, 2)), (R(1, 3), R(2, 3))), FreePoisson(2))),
    "product of projections": FreeProduct(
        (Discrete((0, 1), (R(1, 3), R(2, 3))), Discrete((0, 1), (R(1, 4), R(3, 4))))
    ),
    "product with scalar": FreeProduct((PointMass(3), MarchenkoPastur(R(1, 3)))),
    "sum of two": FreeSum((MarchenkoPastur(R(1, 3)), FreePoisson(R(7, 2)))),
    "sum with points": FreeSum((TWO, FreePoisson(R(1, 2)))),
    "sum with semicircle": FreeSum((Semicircle(2), MarchenkoPastur(R(1, 3)))),
    "shift": FreeSum((FreePoisson(R(1, 2)), PointMass(-1))),
    "tied values and output": Dilation(
        FreeProduct(
            (CompoundFreePoisson(Image(FreePoisson(R(2, 5)), (0, R(1, 3), R(3, 4))), 5), FreePoisson(R(1, 2)))
        ),
        R(1, 2),
    ),
}
CENTERED: dict[str, Law] = {
    "semicircle": Semicircle(R(3, 2)),
    "coin": COIN,
    "coins": FreeSum((COIN, COIN)),
    "semicircle and coin": FreeSum((Semicircle(1), COIN)),
    "compound, coin": CompoundFreePoisson(COIN, 2),
    "compound, semicircle": CompoundFreePoisson(Semicircle(1), R(1, 2)),
    "dilated semicircle": Dilation(Semicircle(1), 3),
}
ALL = {**LAWS, **CENTERED}
WITHOUT_CURVE = {"coins"}  # both terms need a parameter of their own


def fractions(values: tuple[sp.Expr, ...]) -> list[Fraction]:
    return [fraction(value) for value in values]


@pytest.mark.parametrize("name", ALL)
def test_moments_are_sums_over_noncrossing_partitions(name: str) -> None:
    law = ALL[name]
    cumulants = fractions(law.free_cumulants(ORDER))
    assert fractions(law.moments(ORDER)) == [moment_from_cumulants(n, cumulants) for n in range(1, ORDER + 1)]


@pytest.mark.parametrize("name", ALL)
def test_mean_and_variance(name: str) -> None:
    law = ALL[name]
    first, second = law.moments(2)
    assert law.mean == first
    assert law.free_cumulants(2)[1] == second - first**2


@pytest.mark.parametrize("name", LAWS)
def test_s_relation_vanishes_on_the_series(name: str) -> None:
    law = LAWS[name]
    series = s_series(fractions(law.moments(ORDER)))
    relation = sp.Poly(law.s_relation(), S, W)
    assert relation.degree(S) >= 1
    total = [Fraction(0)] * ORDER
    for (power, shift), coefficient in relation.terms():
        term = [Fraction(0)] * ORDER
        term[0] = Fraction(1)
        for _ in range(power):
            term = multiply(term, series)
        for k in range(shift, ORDER):
            total[k] += fraction(coefficient) * term[k - shift]
    assert total == [0] * ORDER


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.s_transform(W) is not None])
def test_s_transform_is_the_series(name: str) -> None:
    law = LAWS[name]
    explicit = law.s_transform(W)
    assert expand(sp.sympify(explicit), W, ORDER) == s_series(fractions(law.moments(ORDER)))


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.s_transform(W) is None])
def test_s_explicit_starts_at_the_inverse_mean(name: str) -> None:
    """The closed form against the exact series at w = ±10⁻⁵, where the series is cut at w⁵."""
    law = LAWS[name]
    explicit = law.s_explicit(W)
    degree = sp.Poly(law.s_relation(), S).degree()
    assert (explicit is None) == (degree != 2)
    if explicit is None:
        return
    series = s_series(fractions(law.moments(ORDER)))
    for w in (R(1, 10**5), R(-1, 10**5)):
        expected = sum(sp.Rational(c.numerator, c.denominator) * w**k for k, c in enumerate(series))
        assert abs(sp.N(explicit.subs(W, w) - expected, 40, maxn=200)) < abs(expected) * sp.Float("1e-20")


@pytest.mark.parametrize("name", [name for name, law in ALL.items() if law.r_transform(W) is not None])
def test_r_transform_is_the_series_of_cumulants(name: str) -> None:
    law = ALL[name]
    explicit = law.r_transform(W)
    assert expand(sp.sympify(explicit), W, ORDER) == fractions(law.free_cumulants(ORDER))


@pytest.mark.parametrize("name", [name for name in ALL if name not in WITHOUT_CURVE])
def test_curve_carries_the_moments(name: str) -> None:
    law = ALL[name]
    curve = law.uniformization()
    psi, chi = (expand(part, Q, ORDER + 1) for part in (curve.psi, curve.chi))
    moments = fractions(law.moments(ORDER))
    assert chi[0] == 0
    assert chi[1] != 0
    assert compose([Fraction(0), *moments], chi) == psi
    product = sp.Mul(*(base**power for base, power in curve.point)) * curve.chi
    assert sp.cancel(sp.together(product)) == 1
    stieltjes = sp.Mul(*(base**power for base, power in curve.stieltjes))
    assert sp.cancel(sp.together(stieltjes + (1 + curve.psi) * curve.chi)) == 0


@pytest.mark.parametrize("name", [name for name in LAWS if name not in WITHOUT_CURVE])
def test_curve_satisfies_the_s_relation(name: str) -> None:
    """At rational parameters, exactly; S-transforms do not exist at mean zero."""
    law = LAWS[name]
    curve = law.uniformization()
    relation = law.s_relation()
    for q in (R(1, 7), R(-2, 9), R(5, 3)):
        psi, chi = curve.psi.subs(Q, q), curve.chi.subs(Q, q)
        if psi == 0:
            continue
        assert sp.sympify(relation.subs({S: (1 + psi) * chi / psi, W: psi})) == 0


@pytest.mark.parametrize("name", ALL)
def test_atoms_are_a_sub_probability(name: str) -> None:
    atoms = [(fraction(a), fraction(w)) for a, w in ALL[name].atoms()]
    assert len({location for location, _ in atoms}) == len(atoms)
    assert all(weight >= 0 for _, weight in atoms)
    assert sum(weight for _, weight in atoms) <= 1
    at_zero = sum(weight for location, weight in atoms if location == 0)
    assert fraction(ALL[name].mass_off_zero) == 1 - at_zero


ATOMS = [
    (MarchenkoPastur(R(5, 2)), {0: R(3, 5)}),
    (MarchenkoPastur(R(1, 3)), {}),
    (FreePoisson(R(2, 5)), {0: R(3, 5)}),
    (LAWS["affine image"], {R(1, 3): R(3, 5)}),
    (Image(MarchenkoPastur(R(5, 2)), (R(1, 3), 0)), {R(1, 3): 1}),
    (LAWS["quadratic image"], {0: R(3, 5)}),
    (LAWS["compound, points"], {}),
    (CompoundFreePoisson(TWO, R(1, 4)), {0: R(3, 4)}),
    (LAWS["compound, projection"], {0: R(1, 2)}),  # 1 − min(1, t(1 − μ({0})))
    (LAWS["product with points"], {0: R(3, 5)}),
    (LAWS["product of projections"], {0: R(1, 3), 1: R(5, 12)}),
    (LAWS["sum with points"], {1: R(0), 5: R(1, 6)}),
    (FreeSum((Discrete((0, 1), (R(1, 2), R(1, 2))), FreePoisson(R(1, 4)))), {0: R(1, 4), 1: R(1, 4)}),
    (LAWS["shift"], {-1: R(1, 2)}),
    (FreeSum((COIN, COIN)), {}),
    (Semicircle(1), {}),
    (FreeSum((Semicircle(1), Discrete((0, 1), (R(1, 9), R(8, 9))))), {}),
]


@pytest.mark.parametrize(("law", "expected"), ATOMS, ids=lambda value: str(value)[:60])
def test_atoms(law: Law, expected: dict[object, object]) -> None:
    merged: dict[sp.Expr, sp.Expr] = {}
    for location, weight in law.atoms():
        merged[location] = merged.get(location, sp.Integer(0)) + weight
    found = {fraction(a): fraction(w) for a, w in merged.items() if w != 0}
    assert found == {fraction(a): fraction(w) for a, w in expected.items() if w != 0}


def test_image_moments_against_direct_expansion() -> None:
    x = sp.Symbol("x")
    base = MarchenkoPastur(R(5, 2))
    for coefficients in ((R(1, 3), R(2, 3)), (0, R(1, 3), R(3, 4)), (1, -2, 3), (R(1, 2), 0, 0, 2)):
        phi = sum(a * x**k for k, a in enumerate(coefficients))
        known = (sp.Integer(1), *base.moments(12))
        direct = tuple(
            sum(c * known[k] for (k,), c in sp.Poly(sp.expand(phi**n), x).terms()) for n in range(1, 5)
        )
        assert Image(base, coefficients).moments(4) == direct


def test_compound_free_poisson_cumulants() -> None:
    t = sp.Symbol("t", positive=True)
    y = sp.Symbol("y", positive=True)
    law = CompoundFreePoisson(MarchenkoPastur(y), t)
    for cumulant, moment in zip(law.free_cumulants(5), MarchenkoPastur(y).moments(5), strict=True):
        assert sp.expand(cumulant - t * moment) == 0
    s = MarchenkoPastur(y).s_transform(W / t) / (t + W)
    assert sp.cancel(law.s_transform(W) - s) == 0


def test_compound_over_a_point_is_free_poisson() -> None:
    assert CompoundFreePoisson(PointMass(1), R(2, 5)).moments(8) == FreePoisson(R(2, 5)).moments(8)


def test_marchenko_pastur_is_a_dilated_free_poisson() -> None:
    y = sp.Symbol("y", positive=True)
    assert MarchenkoPastur(y).moments(6) == tuple(
        sp.expand(m) for m in Dilation(FreePoisson(1 / y), y).moments(6)
    )


def test_symbolic_moments_are_polynomials() -> None:
    y = sp.Symbol("y", positive=True)
    narayana = tuple(
        sum(
            sp.Rational(1, n) * sp.binomial(n, k) * sp.binomial(n, k - 1) * y ** (k - 1)
            for k in range(1, n + 1)
        )
        for n in range(1, 8)
    )
    assert all(sp.expand(a - b) == 0 for a, b in zip(MarchenkoPastur(y).moments(7), narayana, strict=True))


def test_substitution_commutes_with_moments() -> None:
    y, s = sp.symbols("y s", positive=True)
    law = FreeProduct((Dilation(MarchenkoPastur(y), s), FreePoisson(1 / y)))
    values = {y: R(2, 3), s: 5}
    assert law.substitute(values).moments(5) == tuple(m.subs(values) for m in law.moments(5))


def test_rules_name_their_source_once() -> None:
    law = FreeProduct((MarchenkoPastur(2), FreePoisson(3), MarchenkoPastur(5)))
    names = [rule.name for rule in law.rules]
    assert names == ["Marchenko-Pastur", "free Poisson", "free multiplicative convolution"]
    assert all(rule.source for rule in law.rules)


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: MarchenkoPastur(0), "ratio"),
        (lambda: MarchenkoPastur(-1), "ratio"),
        (lambda: MarchenkoPastur(sp.oo), "ratio"),
        (lambda: MarchenkoPastur(float("nan")), "ratio"),
        (lambda: MarchenkoPastur("one half"), "ratio"),
        (lambda: MarchenkoPastur(1j), "ratio"),
        (lambda: FreePoisson(0), "rate"),
        (lambda: Semicircle(-1), "variance"),
        (lambda: PointMass(None), "location"),
        (lambda: Discrete((), ()), "locations"),
        (lambda: Discrete((1, 1), (R(1, 2), R(1, 2))), "locations"),
        (lambda: Discrete((1, 2), (1,)), "locations"),
        (lambda: Discrete((1, 2), (R(1, 2), R(1, 3))), "weights"),
        (lambda: Discrete((1, 2), (R(3, 2), R(-1, 2))), "weights"),
        (lambda: Dilation(MarchenkoPastur(1), 0), "factor"),
        (lambda: CompoundFreePoisson(MarchenkoPastur(1), -1), "rate"),
        (lambda: FreeProduct(()), "factors"),
        (lambda: FreeProduct((Semicircle(1), MarchenkoPastur(1))), "factors"),
        (lambda: FreeSum(()), "terms"),
        (lambda: Image(MarchenkoPastur(1), (1,)), "coefficients"),
    ],
)
def test_bad_parameters(build: object, field: str) -> None:
    with pytest.raises(InputError) as caught:
        build()  # type: ignore[operator]
    assert caught.value.field == field
    assert "\n" not in str(caught.value)
