"""Free convolutions of laws with atoms: where weights add up to one, and where a subordination function is infinite."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory.transforms import Discrete, Law, MarchenkoPastur

HALF, QUARTER = sp.Rational(1, 2), sp.Rational(1, 4)
SOFT, HARD = Fraction(1, 2), Fraction(-1, 2)


def two(t: object, locations: tuple[int, int] = (0, 1)) -> Law:
    weight = sp.sympify(t)
    return Discrete(locations, (1 - weight, weight))


def sound(law: fa.SpectralLaw, order: int = 5) -> None:
    size = max(abs(x) for band in law.edges for x in band)
    assert sum(law.band_masses) + sum(float(atom.weight) for atom in law.atoms) == pytest.approx(1, abs=1e-11)
    for k, moment in enumerate(law.moments(order), 1):
        assert law.integrate(lambda x, k=k: x**k) == pytest.approx(moment, abs=1e-11 * size**k)


def test_two_projections_of_complementary_traces() -> None:
    """p + q with traces 1/4 and 3/4 has the eigenvalues 1 ± √λ: m² = (2z − 1)(2z − 3)/(4z(z − 1)²(z − 2))."""
    law = fa.free_sum(Discrete((0, 1), (3 / 4, 1 / 4)), Discrete((0, 1), (1 / 4, 3 / 4)))
    assert np.array(law.edges) == pytest.approx(np.array([(0, 0.5), (1.5, 2)]), abs=1e-14)
    assert law.edge_exponents == ((HARD, SOFT), (SOFT, HARD))
    assert [(atom.location, atom.weight) for atom in law.atoms] == [(1, HALF)]
    assert law.band_masses == pytest.approx((0.25, 0.25), abs=1e-13)
    near = 10.0 ** -np.arange(1, 13)
    x = np.concatenate([near, 0.5 - near, 1.5 + near, 2 - near])
    x = x[(x > 0) & (x < 2) & ((x < 0.5) | (x > 1.5))]
    d = np.where(x < 1, x, 2 - x)  # exact: 2 − x without rounding
    expected = np.sqrt(np.abs((2 * x - 1) * (2 * x - 3)) / (4 * d * (2 - d))) / (np.pi * np.abs(x - 1))
    assert law.density(x) == pytest.approx(expected, rel=1e-9, abs=1e-9)  # beside 1/2 and 3/2 to √rounding
    assert list(law.density(np.array([0.0, 2.0]))) == [np.inf, np.inf]
    z = np.array([0.6, 1 - 1e-3, 1.3, 2.5, -1, 0.5 + 1e-6j, 1j])
    square = (2 * z - 1) * (2 * z - 3) / (4 * z * (z - 1) ** 2 * (z - 2))
    assert law.stieltjes(z) ** 2 == pytest.approx(square, rel=1e-9)
    assert law.stieltjes(0.5) == pytest.approx(0, abs=1e-7)  # the edge itself, up to √rounding
    sound(law)


CASES = {  # operation, laws, bands, exponents of their ends, atoms
    "m = 0 inside a gap": (
        fa.free_sum, two(HALF), two(HALF, (-1, 1)), [(-1, 0), (1, 2)], [(HARD, HARD), (HARD, HARD)], []
    ),
    "three atoms, both ends of the middle band": (
        fa.free_sum, Discrete((0, 1, 2), (QUARTER, HALF, QUARTER)), two(HALF),
        [None, (1, 2), None], [(SOFT, SOFT), (HARD, HARD), (SOFT, SOFT)], [],
    ),
    "an atom of Marchenko-Pastur away from 0": (
        fa.free_sum, MarchenkoPastur(2), two(HALF, (0, 2)), [(0, None), (2, None)], [(HARD, SOFT), (HARD, SOFT)], []
    ),
    "product, both ends": (
        fa.free_product, two(HALF, (1, 2)), two(HALF, (1, 3)), [(1, 2), (3, 6)], [(HARD, HARD), (HARD, HARD)], []
    ),
    "product with atoms": (
        fa.free_product, two(sp.Rational(3, 4), (1, 2)), two(QUARTER, (1, 3)),
        [(1, 1.5), (4, 6)], [(HARD, SOFT), (SOFT, HARD)], [(2, 0.5)],
    ),
    "weights given as floats": (
        fa.free_sum, two(0.1), two(0.9), [(0, 0.2), (1.8, 2)], [(HARD, SOFT), (SOFT, HARD)], [(1, 0.8)]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_where_weights_add_up_to_one(name: str) -> None:
    operation, first, second, bands, exponents, atoms = CASES[name]
    law = operation(first, second)
    assert law.edge_exponents == tuple(exponents)
    for band, expected in zip(law.edges, bands, strict=True):
        for found, wanted in zip(band, expected or (None, None), strict=True):
            assert wanted is None or found == pytest.approx(wanted, abs=1e-13)
    assert [(atom.location, float(atom.weight)) for atom in law.atoms] == [
        (pytest.approx(x), pytest.approx(w, abs=1e-15)) for x, w in atoms
    ]
    sound(law)


def test_powers_and_corners() -> None:
    """t·μ({a}) = t − 1 at ta, and μ({a}) = 1 − t at a; 0.9 as a float leaves the same weight as 9/10."""
    power = fa.free_power(two(sp.Rational(2, 3), (1, 2)), 3)
    assert power.edges == (pytest.approx((10 / 3, 6), rel=1e-13),)
    assert power.edge_exponents == ((SOFT, HARD),)
    sound(power)
    given, exact = (fa.free_compression(two(sp.Rational(1, 10), (1, 2)), t) for t in (0.9, Fraction(9, 10)))
    assert given.edges == (pytest.approx(exact.edges[0], rel=1e-12),)
    assert given.edge_exponents == exact.edge_exponents == ((SOFT, HARD),)
    assert len(given.atoms) == len(exact.atoms) == 1
    sound(given)


def test_all_signs_of_the_weights_beside_one() -> None:
    """Weights that add up to less than one leave no atom and a soft edge, to more an atom and a soft edge."""
    less, more = (fa.free_sum(two(QUARTER), two(sp.Rational(3, 4) + shift)) for shift in (HALF / 8, -HALF / 8))
    for law in (less, more):
        assert all(exponent == SOFT for ends in law.edge_exponents for exponent in ends)
        sound(law)
    assert [atom.location for atom in less.atoms] == [1, 2]
    assert [atom.location for atom in more.atoms] == [0, 1]


def test_edges_of_sums_are_roots_of_the_discriminant() -> None:
    """Traces 1/4 and 1/3: 12z² − 12z + 1 and 12z² − 36z + 25, where m passes through 0 between them."""
    edges = np.array(fa.free_sum(two(QUARTER), two(sp.Rational(1, 3))).edges).ravel()
    expected = sorted([*np.roots([12, -12, 1]), *np.roots([12, -36, 25])])
    assert edges == pytest.approx(np.array(expected), rel=1e-13)


def test_a_mean_of_zero_is_checked_against_the_size() -> None:
    law = fa.free_sum(
        Discrete((-2, 3), (sp.Rational(3, 5), sp.Rational(2, 5))), Discrete((-2, 4, 3), (HALF, QUARTER, QUARTER))
    )
    assert law.mean == pytest.approx(0.75)
    sound(law)
    sound(fa.free_sum(two(HALF, (-1, 1)), two(QUARTER, (-1, 3))))


def test_a_hard_edge_at_zero_grows_by_one_order() -> None:
    """Where t·μ({0}) = t − 1, F^{1 + 1/k} is the first term left of the inverse of F."""
    law = fa.law(fa.Attention(n_tokens=512, d_model=512, n_heads=2, d_key=128, d_value=128, d_out=256))
    (weight, k), power = (law.atoms[0].weight, 1 / (1 + law.edge_exponents[0][0])), Fraction(2)
    assert (weight, k) == (1 - 1 / power, 2)  # t·w = t − 1
    doubled = fa.free_power(law, power)
    assert doubled.edge_exponents[0][0] == Fraction(1, 3) - 1
    assert doubled.atoms == ()
    sound(doubled, 3)


def test_hard_edges_beside_weights_that_add_up_are_refused() -> None:
    layer = fa.law(fa.Attention(n_tokens=512, d_model=512, n_heads=2, d_key=128, d_value=128, d_out=256))
    with pytest.raises(fa.NotCoveredError, match="free sum in which the weights of two atoms add up to one at 1, one"):
        fa.free_sum(layer, two(HALF, (1, 3)))
