"""Images of laws under polynomials: against the push-forward of the law itself, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory.transforms import Discrete, FreePoisson, Image, Law, MarchenkoPastur, Semicircle

HALF, TENTH = sp.Rational(1, 2), sp.Rational(1, 10)

MONOTONE = {  # law, coefficients, whether φ rises on the support
    "mean 0": (MarchenkoPastur(HALF), (-1, 1), True),
    "0 inside the band": (MarchenkoPastur(HALF), (sp.Rational(-1, 2), 1), True),
    "all below 0": (MarchenkoPastur(HALF), (-5, 1), True),
    "an atom, moved down": (MarchenkoPastur(2), (-1, 1), True),
    "a hard edge at 0": (FreePoisson(1), (0, 3), True),
    "an irrational shift": (MarchenkoPastur(HALF), (-sp.sqrt(2), 1), True),
    "moved up": (MarchenkoPastur(HALF), (1, 2), True),
    "semicircle": (Semicircle(1), (1, 2), True),
    "quadratic": (MarchenkoPastur(HALF), (0, 1, 1), True),
    "quadratic with an atom": (MarchenkoPastur(2), (0, 1, 1), True),
    "turns left of the support": (MarchenkoPastur(TENTH), (0, -HALF, 1), True),
    "irrational, turns left of it": (MarchenkoPastur(TENTH), (0, -sp.sqrt(2) / 2, 1), True),
    "turns right of the support": (MarchenkoPastur(TENTH), (0, -8, 1), False),
}


@pytest.mark.parametrize("name", MONOTONE)
def test_push_forward(name: str) -> None:
    """P(φ(x) ≤ φ(a)) is the distribution function of x, or one minus it; moments are integrals of φᵏ; atoms move."""
    source, coefficients, rising = MONOTONE[name]
    law, image = fa.law(source), fa.law(Image(source, coefficients))
    numbers = [float(a) for a in coefficients]

    def phi(x: np.ndarray) -> np.ndarray:
        return np.polynomial.polynomial.polyval(x, numbers)

    for k in range(1, 5):
        expected = float(law.integrate(lambda x, k=k: phi(x) ** k))
        size = max(abs(x) for band in image.edges for x in band) ** k
        assert image.moments(k)[-1] == pytest.approx(expected, abs=1e-12 * size)
        assert image.integrate(lambda x, k=k: x**k) == pytest.approx(expected, abs=1e-11 * size)
    x = np.linspace(*law.edges[0], 27)[1:-1]
    below = law.cdf(x) if rising else 1 - law.cdf(x)
    assert image.cdf(phi(x)) == pytest.approx(below, abs=1e-11)
    slope = np.abs(np.polynomial.polynomial.polyval(x, np.polynomial.polynomial.polyder(numbers)))
    assert image.density(phi(x)) == pytest.approx(law.density(x) / slope, rel=1e-9)
    assert [(atom.location, atom.weight) for atom in image.atoms] == [
        (pytest.approx(float(phi(np.float64(atom.location)))), atom.weight) for atom in law.atoms
    ]
    ends = sorted(phi(np.array(law.edges[0])))
    assert image.edges == (pytest.approx(tuple(ends), rel=1e-12, abs=1e-13),)


def test_many_digits_beside_zero() -> None:
    image, law = fa.law(Image(MarchenkoPastur(HALF), (-1, 1))), fa.law(MarchenkoPastur(HALF))
    for shifted, plain in zip(image.edges_to(40)[0], law.edges_to(40)[0], strict=True):
        assert abs(shifted + 1 - plain) < 1e-38
    assert abs(image.stieltjes(0, digits=30) - law.stieltjes(1, digits=30)) < 1e-28


def test_two_points_may_meet() -> None:
    """(x − 1)² takes 0 and 2 to the same point."""
    image = fa.law(Image(Discrete((0, 1, 2), (HALF / 2, HALF, HALF / 2)), (1, -2, 1)))
    assert [(atom.location, atom.weight) for atom in image.atoms] == [(0, Fraction(1, 2)), (1, Fraction(1, 2))]


def test_a_turn_inside_the_support_is_refused() -> None:
    """φ = x² − x turns at 1/2, where φ = −1/4: the density diverges there."""
    with pytest.raises(fa.NotCoveredError, match=r"diverges at an edge away from 0 \(-0.25 before scaling\)"):
        fa.law(Image(MarchenkoPastur(HALF), (0, -1, 1)))


@pytest.mark.parametrize(
    ("law", "coefficients", "form"),
    [
        (Semicircle(1), (0, 0, 1), r"of degree 2 \(semicircle\)"),
        (MarchenkoPastur(HALF), (1, 0, 1), "of degree 2 with a constant term"),
        (MarchenkoPastur(HALF), (0, 0, 0, 1), "of degree 3"),
    ],
)
def test_other_images_say_what_is_covered(law: Law, coefficients: tuple[int, ...], form: str) -> None:
    with pytest.raises(fa.NotCoveredError, match=f"polynomial {form}.*degree 1, and degree 2 without constant term"):
        fa.law(Image(law, coefficients))


def test_falling_lines_are_refused() -> None:
    with pytest.raises(fa.InputError, match="the last not negative"):
        Image(MarchenkoPastur(HALF), (0, -1))
