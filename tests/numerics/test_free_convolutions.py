"""Free convolutions by subordination: closed laws, exact moments, transforms, atoms, simulation, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.errors import InputError
from freeattn.numerics.cauchy_sums import CauchySums
from freeattn.numerics.fixed_points import BAND, GAP, FixedPoints
from freeattn.numerics.free_convolutions import _product, _sum
from freeattn.numerics.subordination import FreeSumEquation
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

HALF, THIRD = sp.Rational(1, 2), sp.Rational(1, 3)
SIGNS = Discrete((1, -1), (HALF, HALF))


def bernoulli(t: Fraction) -> Law:
    return Discrete((0, 1), (1 - sp.Rational(t), sp.Rational(t)))


def inner(law: fa.SpectralLaw, count: int = 101) -> np.ndarray:
    """Points inside every band, close to its ends too."""
    angle = (np.arange(count) + 0.5) / count * np.pi / 2
    return np.concatenate([a + (b - a) * np.sin(angle) ** 2 for a, b in law.edges])


def sound(law: fa.SpectralLaw, order: int = 6) -> None:
    """Mass one, and the moments of the density are the exact ones."""
    assert sum(law.band_masses) + sum(float(atom.weight) for atom in law.atoms) == pytest.approx(1, abs=1e-10)
    size = max(abs(x) for band in law.edges for x in band)
    for k, moment in enumerate(law.moments(order), 1):
        assert law.integrate(lambda x, k=k: x**k) == pytest.approx(moment, rel=1e-10, abs=1e-11 * size**k)


def same(found: fa.SpectralLaw, expected: fa.SpectralLaw, tolerance: float = 1e-10) -> None:
    assert np.array(found.edges) == pytest.approx(np.array(expected.edges), rel=1e-13, abs=1e-14)
    assert found.edge_exponents == expected.edge_exponents
    assert [(a.location, a.weight) for a in found.atoms] == [
        (pytest.approx(b.location, abs=1e-15), b.weight) for b in expected.atoms
    ]
    x = inner(expected)
    assert found.density(x) == pytest.approx(expected.density(x), rel=tolerance)
    assert found.cdf(x) == pytest.approx(expected.cdf(x), abs=1e-11)
    size = expected.edges[-1][1]
    z = np.array([0.3 + 0.1j, 1 + 1e-3j, -2 - 0.5j, 3j, 1.2]) * size
    assert found.stieltjes(z) == pytest.approx(expected.stieltjes(z), rel=1e-11)
    sound(found)


@pytest.fixture(scope="module")
def attention() -> fa.SpectralLaw:
    return fa.law(fa.Attention(n_tokens=512, d_model=512, n_heads=4, d_key=64, output="attention"))


@pytest.fixture(scope="module")
def words() -> fa.SpectralLaw:
    """A law of route P, with a hard edge of order 3."""
    return fa.law(
        fa.Attention(n_tokens=512, d_model=512, n_heads=2, d_key=256, d_value=256, d_out=512, inputs="gaussian")
    )


# Closed laws ---------------------------------------------------------------------------------------------------------


def test_two_signs_give_the_arcsine_law() -> None:
    law = fa.free_sum(SIGNS, SIGNS)
    x = np.linspace(-1.999, 1.999, 200)
    assert law.density(x) == pytest.approx(1 / (np.pi * np.sqrt(4 - x**2)), rel=1e-11)
    assert law.cdf(x) == pytest.approx(0.5 + np.arcsin(x / 2) / np.pi, abs=1e-12)
    assert law.quantile([0.25, 0.75]) == pytest.approx([-np.sqrt(2), np.sqrt(2)], rel=1e-12)
    assert law.edges == (pytest.approx((-2, 2), rel=1e-14),)
    assert law.edge_exponents == ((Fraction(-1, 2), Fraction(-1, 2)),)
    assert law.density(2.0) == np.inf
    assert law.moments(6) == (0, 2, 0, 6, 0, 20)
    assert law.atoms == ()


CLOSED = {
    "semicircles": (_sum, Semicircle(1), Semicircle(2), Semicircle(3)),
    "MP and semicircle": (_sum, MarchenkoPastur(HALF), Semicircle(1), FreeSum((MarchenkoPastur(HALF), Semicircle(1)))),
    "signs and narrow semicircle": (
        _sum, SIGNS, Semicircle(sp.Rational(1, 100)), FreeSum((SIGNS, Semicircle(sp.Rational(1, 100))))
    ),
    "free Poisson laws": (_sum, FreePoisson(HALF), FreePoisson(THIRD), FreePoisson(HALF + THIRD)),
    "MP and MP": (
        _product, MarchenkoPastur(HALF), MarchenkoPastur(THIRD),
        FreeProduct((MarchenkoPastur(HALF), MarchenkoPastur(THIRD))),
    ),
    "two hard edges": (
        _product, MarchenkoPastur(1), MarchenkoPastur(1), FreeProduct((MarchenkoPastur(1), MarchenkoPastur(1)))
    ),
    "atom at 0": (
        _product, MarchenkoPastur(2), MarchenkoPastur(3), FreeProduct((MarchenkoPastur(2), MarchenkoPastur(3)))
    ),
    "two bands": (
        _product, Discrete((1, 50), (HALF, HALF)), MarchenkoPastur(sp.Rational(1, 10)),
        FreeProduct((Discrete((1, 50), (HALF, HALF)), MarchenkoPastur(sp.Rational(1, 10)))),
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_laws(name: str) -> None:
    operation, first, second, expected = CLOSED[name]
    same(operation(fa.law(first), fa.law(second)), fa.law(expected))


def test_compression_and_power_of_marchenko_pastur() -> None:
    """κ_n = y^{n−1} becomes (ty)^{n−1} in a corner, and t·y^{n−1}, which is D_y π_{t/y}, as a power."""
    law = fa.law(MarchenkoPastur(HALF))
    same(fa.free_compression(law, Fraction(1, 4)), fa.law(MarchenkoPastur(sp.Rational(1, 8))))
    same(fa.free_power(law, Fraction(5, 2)), fa.law(Dilation(FreePoisson(5), HALF)))
    same(fa.free_power(MarchenkoPastur(3), 2), fa.law(Dilation(FreePoisson(sp.Rational(2, 3)), 3)))


def test_power_two_is_the_sum_of_two_copies(attention: fa.SpectralLaw) -> None:
    same(fa.free_power(attention, 2), fa.free_sum(attention, attention))


def test_compression_is_the_product_with_a_projection(attention: fa.SpectralLaw) -> None:
    """p·a·p has the law of the corner, beside an atom 1 − t at 0."""
    corner, product = fa.free_compression(attention, 0.25), fa.free_product(attention, bernoulli(Fraction(1, 4)))
    assert product.atoms[0].weight == Fraction(3, 4)
    assert product.edges[0] == pytest.approx(corner.edges[0], rel=1e-12)
    x = inner(corner)
    assert product.density(x) == pytest.approx(corner.density(x) / 4, rel=1e-10)


def test_expressions_with_a_curve_are_answered_by_it() -> None:
    law = fa.free_sum(MarchenkoPastur(HALF), fa.law(Semicircle(1)))
    assert law.spec == FreeSum((MarchenkoPastur(HALF), Semicircle(1)))
    assert len(str(law.edges_to(40)[0][0])) > 35
    assert fa.free_product(MarchenkoPastur(HALF), MarchenkoPastur(1)).spec == FreeProduct(
        (MarchenkoPastur(HALF), MarchenkoPastur(1))
    )


def test_normalized_expressions_keep_their_unit() -> None:
    """A law of mean one is not the expression that it was made from."""
    law = fa.law(FreePoisson(2))
    assert fa.free_sum(law.normalized(), law.normalized()).mean == pytest.approx(2)


# Laws of attention ---------------------------------------------------------------------------------------------------


def test_sums_and_products_of_attention_laws(attention: fa.SpectralLaw) -> None:
    total, product = fa.free_sum(attention, attention), fa.free_product(attention, attention)
    sound(total)
    sound(product)
    assert total.mean == pytest.approx(2 * attention.mean)
    assert product.mean == pytest.approx(attention.mean**2)
    assert total.free_cumulants(6) == pytest.approx([2 * k for k in attention.free_cumulants(6)], rel=1e-12)


def test_far_apart_parts_have_a_band_each(attention: fa.SpectralLaw) -> None:
    law = fa.free_sum(attention, Discrete((0, 1000), (sp.Rational(1, 4), sp.Rational(3, 4))))
    assert law.band_masses == pytest.approx((0.25, 0.75), abs=1e-11)
    sound(law)


def test_words_times_marchenko_pastur(words: fa.SpectralLaw) -> None:
    """MHA with Gaussian input, then one Gaussian layer more: its own moments, the hard edge, and S."""
    law = fa.free_product(words, MarchenkoPastur(HALF))
    assert law.edge_exponents[0][0] == words.edge_exponents[0][0] == Fraction(-2, 3)
    assert fa.free_product(words, MarchenkoPastur(1)).edge_exponents[0][0] == Fraction(-3, 4)
    sound(law, 4)
    w = np.array([-0.9, -0.5, -0.01])
    assert law.s_transform(w) == pytest.approx(words.s_transform(w) / (1 + w / 2), rel=1e-9)


def test_words_beside_the_same_law_by_transforms() -> None:
    """The two routes to one layer give one product."""
    spec = fa.Attention(n_tokens=256, d_model=256, n_heads=2, d_key=64, d_value=64, d_out=512)
    closed, words = fa.law(spec), fa.law(spec, route="pencil")
    one, other = fa.free_product(closed, MarchenkoPastur(HALF)), fa.free_product(words, MarchenkoPastur(HALF))
    assert np.array(other.edges) == pytest.approx(np.array(one.edges), rel=1e-10)
    x = inner(one)
    assert other.density(x) == pytest.approx(one.density(x), rel=1e-9)


def test_associativity(attention: fa.SpectralLaw) -> None:
    mp, signs = fa.law(MarchenkoPastur(HALF)), fa.law(SIGNS)
    same(fa.free_sum(fa.free_sum(attention, mp), signs), fa.free_sum(attention, fa.free_sum(mp, signs)))
    other = fa.law(Discrete((1, 3), (THIRD, 1 - THIRD)))
    same(fa.free_product(fa.free_product(attention, mp), other), fa.free_product(attention, fa.free_product(mp, other)))


def test_order_does_not_matter(attention: fa.SpectralLaw) -> None:
    other = fa.law(CompoundFreePoisson(Discrete((1, 3), (HALF, HALF)), 2))
    same(fa.free_sum(attention, other), fa.free_sum(other, attention))


def test_transforms_add_and_multiply(attention: fa.SpectralLaw) -> None:
    other = fa.law(Discrete((1, 3), (THIRD, 1 - THIRD)))
    total, product = fa.free_sum(attention, other), fa.free_product(attention, other)
    g = np.array([-0.5, -0.1, 0.05, 0.01 + 0.02j, -0.03j])
    assert total.r_transform(g) == pytest.approx(attention.r_transform(g) + other.r_transform(g), rel=1e-11)
    w = np.array([-0.95, -0.3, -1e-6, 0, 0.02])
    assert product.s_transform(w) == pytest.approx(attention.s_transform(w) * other.s_transform(w), rel=1e-11)


@pytest.mark.slow
def test_simulation_of_rotated_matrices(attention: fa.SpectralLaw) -> None:
    """Diagonal matrices of quantiles, one of them rotated: the spectra of sum, product and corner."""
    size, rng = 1500, np.random.default_rng(7)
    other = fa.law(MarchenkoPastur(HALF))
    levels = (np.arange(size) + 0.5) / size
    rotation, triangle = np.linalg.qr(rng.standard_normal((size, size)))
    rotation *= np.sign(np.diag(triangle))
    a, b = attention.quantile(levels), other.quantile(levels)
    rotated = (rotation * b) @ rotation.T
    corner = ((rotation * a) @ rotation.T)[: size // 3, : size // 3]
    for law, matrix in (
        (fa.free_sum(attention, other), np.diag(a) + rotated),
        (fa.free_product(attention, other), np.sqrt(a)[:, None] * rotated * np.sqrt(a)),
        (fa.free_compression(attention, Fraction(1, 3)), corner),
    ):
        found = np.linalg.eigvalsh(matrix)
        levels = (np.arange(found.size) + 0.5) / found.size
        assert np.abs(law.cdf(found) - levels).max() < 5e-3
        assert [np.mean(found**k) for k in range(1, 5)] == pytest.approx(law.moments(4), rel=1e-2)


HARD_CASES = {
    "poles beside nodes": lambda: fa.free_sum(
        MarchenkoPastur(sp.Rational(9, 10)),
        CompoundFreePoisson(
            Discrete((sp.Rational(113, 10), sp.Rational(169, 10)), (sp.Rational(5, 9), sp.Rational(4, 9))),
            sp.Rational(3, 10),
        ),
    ),
    "a grid that meets an atom": lambda: fa.free_sum(
        FreePoisson(sp.Rational(1, 5)), Discrete((sp.Rational(67, 10), sp.Rational(36, 5)), (THIRD, 1 - THIRD))
    ),
    "a hard edge beside an atom": lambda: fa.free_power(
        fa.Attention(n_tokens=512, d_model=512, n_heads=2, d_key=128, d_value=128, d_out=256), Fraction(8, 5)
    ),
    "a narrow band": lambda: fa.free_sum(SIGNS, fa.law(Image(Semicircle(1), (0, sp.Rational(1, 1000))))),
}


@pytest.mark.parametrize("name", HARD_CASES)
def test_hard_cases(name: str) -> None:
    sound(HARD_CASES[name](), 4)


# Atoms ---------------------------------------------------------------------------------------------------------------


def test_atoms_of_sums() -> None:
    """μ({a}) + ν({b}) − 1 at a + b."""
    law = fa.free_sum(bernoulli(Fraction(1, 4)), bernoulli(Fraction(1, 5)))
    assert [(atom.location, atom.weight) for atom in law.atoms] == [(0, Fraction(11, 20)), (1, Fraction(1, 20))]
    sound(law)
    law = fa.free_sum(Discrete((0, 5), (sp.Rational(1, 10), sp.Rational(9, 10))), FreePoisson(HALF))
    assert [(atom.location, atom.weight) for atom in law.atoms] == [(5, Fraction(2, 5))]
    assert law.cdf(5.0) - law.cdf(5 - 1e-12) == pytest.approx(0.4, abs=1e-6)


def test_atoms_of_products() -> None:
    """The larger one at 0, the rule of sums elsewhere; two projections of trace 3/4, their arcsine band between."""
    law = fa.free_product(bernoulli(Fraction(3, 4)), bernoulli(Fraction(3, 4)))
    assert [(atom.location, atom.weight) for atom in law.atoms] == [(0, Fraction(1, 4)), (1, Fraction(1, 2))]
    assert law.edges == (pytest.approx((0, 0.75), abs=1e-14),)
    assert law.edge_exponents[0][0] == Fraction(-1, 2)
    sound(law)


def test_atoms_of_powers_and_corners() -> None:
    law = fa.free_power(bernoulli(Fraction(1, 5)), 2)
    assert [(atom.location, atom.weight) for atom in law.atoms] == [(0, Fraction(3, 5))]
    sound(law)
    corner = fa.free_compression(bernoulli(Fraction(1, 5)), HALF)
    assert [(atom.location, atom.weight) for atom in corner.atoms] == [(0, Fraction(3, 5))]
    assert np.array(corner.edges) == pytest.approx(np.array(law.edges) / 2, rel=1e-13)


def test_units_of_a_mean_one_law(attention: fa.SpectralLaw) -> None:
    for law in (fa.free_power(bernoulli(Fraction(1, 5)), 3), fa.free_compression(attention, 0.5)):
        one = law.normalized()
        assert one.mean == 1
        assert one.moments(3) == pytest.approx([m / law.mean**k for k, m in enumerate(law.moments(3), 1)])
        assert np.array(one.edges) == pytest.approx(np.array(law.edges) / law.mean)
        sound(one)


# The sums over nodes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", ["1/2", "1", "2", "9/10"])
def test_sums_over_nodes_on_and_beside_the_support(ratio: str) -> None:
    law = fa.law(MarchenkoPastur(sp.Rational(ratio)))
    left, right = law.edges[0]
    inside = left + (right - left) * np.array([1e-5, 0.02, 0.3, 0.7, 0.999])
    beside = np.concatenate([inside + 1j * d for d in (0, 1e-12, 1e-6, 1e-3, 0.1)])
    z = np.concatenate([beside, right + np.array([1e-8, 1e-3, 1, 1e5]), [-1e-3, -1, 1e-9j]])
    values, m = CauchySums(law)(z), law.stieltjes(z)
    assert values.m == pytest.approx(m, rel=2e-11)
    assert values.h == pytest.approx(z + 1 / m, rel=1e-9)


# Refusals ------------------------------------------------------------------------------------------------------------


def test_refusals(attention: fa.SpectralLaw) -> None:
    with pytest.raises(fa.InputError, match="laws on \\[0, ∞\\) for ⊠"):
        fa.free_product(attention, Semicircle(1))
    with pytest.raises(fa.InputError, match="no point masses"):
        fa.free_sum(attention, PointMass(1))
    with pytest.raises(fa.InputError, match="t ≥ 1"):
        fa.free_power(attention, 0.5)
    for t in (0, 1.5, "half"):
        with pytest.raises(fa.InputError, match="t = "):
            fa.free_compression(attention, t)
    with pytest.raises(fa.NotCoveredError, match="numbers are doubles"):
        fa.free_sum(attention, attention).density(3, digits=30)


def test_point_masses_shift_where_there_is_a_curve() -> None:
    shifted = fa.free_sum(MarchenkoPastur(HALF), PointMass(1))
    assert shifted.edges == fa.law(Image(MarchenkoPastur(HALF), (1, 1))).edges


@pytest.mark.parametrize("name", ["sum", "product", "corner", "signs"])
def test_curves_from_exact_moments(name: str) -> None:
    half, third = sp.Rational(1, 2), sp.Rational(1, 3)
    three = fa.law(Discrete((0, 1, 3), (third, third, third)))
    coin, wide = fa.law(Discrete((-1, 1), (half, half))), fa.law(MarchenkoPastur(half))
    law = {
        "sum": lambda: fa.free_sum(three, three), "product": lambda: fa.free_product(three, wide),
        "corner": lambda: fa.free_compression(three, Fraction(1, 2)), "signs": lambda: fa.free_sum(coin, coin),
    }[name]()
    curve = law.curve()
    for z in (1 + 1j, 0.2 - 0.7j):
        assert abs(curve.residual(z, complex(law.stieltjes(z)))) < 1e-12
        assert abs(curve.residual(z, 1.01 * complex(law.stieltjes(z)))) > 1e-6
    assert [float(m) for m in law.moments(4, exact=True)] == pytest.approx(law.moments(4), rel=1e-12)


def test_a_curve_needs_rational_moments() -> None:
    with pytest.raises(fa.NotCoveredError, match="irrational"):
        fa.law(fa.architecture("bert-base", n_tokens=512)).curve()


def test_refusals_name_the_operation() -> None:
    with pytest.raises(fa.InputError, match="free_compression"):
        fa.free_compression(fa.law(PointMass(2)), Fraction(1, 2))


def test_points_of_a_band_where_one_law_is_narrow():
    """ω₁ = z − H₂(ω₂) has Im ω₁ ~ Var ν · πρ: 1e-9 of |ω₁| here, which is no rounding."""
    wide, narrow = fa.law(Dilation(MarchenkoPastur(Fraction(1, 2)), 10**4)), fa.law(Semicircle(1))
    equation = FreeSumEquation(CauchySums(wide), CauchySums(narrow), (-2.0, 10**4 * 3.0))
    x = np.array([400.0, 900.0, 1e4, 2.9e4])  # the band is that of `wide`, [857.8…, 29142.1…], nearly
    for points in (FixedPoints(equation), FixedPoints(equation.exchanged())):
        status, omega = points.classify(x)
        assert list(status) == [GAP, BAND, BAND, BAND]
        m = points.output(x.astype(complex), omega)
        np.testing.assert_allclose(m.imag[1:] / np.pi, wide.density(x[1:]), rtol=1e-3)


@pytest.mark.parametrize("convolve", [fa.free_sum, fa.free_product])
def test_too_few_laws_and_what_is_none(convolve):
    with pytest.raises(InputError, match=r"laws = .* is not allowed; expected two laws or more, each a SpectralLaw"):
        convolve(SIGNS)
    with pytest.raises(InputError, match=r"laws = 3 is not allowed; expected a SpectralLaw, or what fa.law takes"):
        convolve(SIGNS, 3)
    with pytest.raises(InputError, match="law = 3 is not allowed"):
        fa.free_power(3, 2)
