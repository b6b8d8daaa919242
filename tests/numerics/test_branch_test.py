"""The local test of the physical branch: of all roots of the equation one passes, the right one.

All roots q of x(q) = z̄ are isolated in ball arithmetic, so every wrong root is planted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from flint import acb, acb_poly, ctx, fmpq, fmpq_poly
from specimens import EVERYTHING, SIX, SPECS, built

from freeattn.numerics.curve import Chart, ExactCurve
from freeattn.numerics.exact import exact_law

BITS = 600  # of the roots: their clusters can be closer than a double resolves
TESTED = [*SPECS, "Marchenko-Pastur", "Marchenko-Pastur, atom", "sample covariance", "quadratic image"]
assert set(SIX) <= set(TESTED)


class Roots:
    """The curve of one law, and all its roots above a point."""

    def __init__(self, name: str) -> None:
        exact = exact_law(EVERYTHING[name])
        self.unit = float(exact.unit(15))
        self.curve = ExactCurve(exact.curve(40))
        self.chart = Chart(self.curve, fmpq(0))
        one = fmpq_poly([1])
        self.top, self.bottom = one * self.curve.constant, one
        for polynomial, power in self.curve.point:
            if power > 0:
                self.top *= polynomial**power
            else:
                self.bottom *= polynomial ** (-power)

    def above(self, x: complex) -> Any:
        """Every q with x(q) = x, to double rounding: isolated and refined in ball arithmetic."""
        real, imag = (fmpq(*part.as_integer_ratio()) for part in (x.real, x.imag))
        size = max(self.top.degree(), self.bottom.degree()) + 1
        precision, ctx.prec = ctx.prec, BITS
        try:
            equation = acb_poly(
                [acb(self.top[k] - real * self.bottom[k], -imag * self.bottom[k]) for k in range(size)]
            )
            return np.array([complex(root) for root in equation.roots(tol=2.0**-100)])
        finally:
            ctx.prec = precision

    def passing(self, roots: Any, x: complex, strict: bool) -> Any:
        with np.errstate(all="ignore"):
            return self.chart.test(roots, np.full(roots.shape, x, dtype=complex), strict)  # type: ignore[misc]


@lru_cache(maxsize=64)
def roots_of(name: str) -> Roots:
    return Roots(name)


def check_points(name: str, points: Any, strict: bool) -> None:
    roots, law = roots_of(name), built(name)
    for z in points:
        x = complex(z) / roots.unit
        candidates = roots.above(x.conjugate())
        passed = candidates[roots.passing(candidates, x.conjugate(), strict)]
        assert len(passed) == 1, (name, z, candidates)
        m = np.conj(roots.chart.stieltjes(passed))[0] / roots.unit
        assert m == pytest.approx(law.stieltjes(z), rel=1e-9)


@pytest.mark.parametrize("name", [*SIX, "mha, two bands", "values, atom", "sample covariance"])
def test_one_root_passes_in_the_upper_half_plane(name: str) -> None:
    law, rng = built(name), np.random.default_rng(7)
    high = law.edges[-1][1]
    real = rng.uniform(-0.2, 1.5, 8) * high
    check_points(name, real + 1j * 10.0 ** rng.uniform(-2, 0.5, 8) * high, strict=False)


@pytest.mark.parametrize("name", ["tied values", "tied values, atom", "tied mha", "mha"])
def test_one_root_passes_near_the_negative_axis(name: str) -> None:
    high, rng = built(name).edges[-1][1], np.random.default_rng(3)
    real, height = -rng.uniform(0.1, 0.7, 20), 10.0 ** rng.uniform(-4.5, -3, 20)
    check_points(name, high * (real + 1j * height), strict=False)


@pytest.mark.parametrize("name", TESTED)
def test_one_root_passes_inside_bands(name: str) -> None:
    rng = np.random.default_rng(8)
    for left, right in built(name).edges:
        check_points(name, left + (right - left) * rng.uniform(0.01, 0.99, 8), strict=True)


@pytest.mark.parametrize("name", TESTED)
def test_conjugate_roots_are_refused(name: str) -> None:
    roots, law = roots_of(name), built(name)
    left, right = law.edges[0]
    x = (left + (right - left) * np.linspace(0.05, 0.95, 5)) / roots.unit
    for point in x:
        candidates = roots.above(complex(point))
        physical = candidates[roots.passing(candidates, complex(point), strict=True)]
        assert not roots.passing(np.conj(physical), complex(point), strict=True).any()


@pytest.mark.parametrize("name", ["attention", "mha", "tied mha", "head-sum"])
def test_no_root_passes_as_inside_a_band_where_there_is_none(name: str) -> None:
    roots, law = roots_of(name), built(name)
    high = law.edges[-1][1]
    for z in (1.001 * high, 1.1 * high, 3 * high):
        x = complex(z / roots.unit, -0.0)  # the conjugate of a point above the axis
        candidates = roots.above(x)
        assert not roots.passing(candidates, x, strict=True).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTED)
def test_one_root_passes_at_many_points(name: str) -> None:
    law, rng = built(name), np.random.default_rng(9)
    high = law.edges[-1][1]
    real = rng.uniform(-0.2, 1.5, 100) * high
    check_points(name, real + 1j * 10.0 ** rng.uniform(-2.5, 1, 100) * high, strict=False)
    for left, right in law.edges:
        check_points(name, left + (right - left) * rng.uniform(0.003, 0.997, 100), strict=True)
